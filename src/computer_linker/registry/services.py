"""The long-lived parts of one service, each made on first use and closed in reverse order."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from computer_linker.config.schema import Config

S = TypeVar("S")


class Services:
    """Finds a long-lived part by its type, so that a new part needs no list kept by hand.

    A part is a class with `open(services)` that makes it; an `aclose` coroutine, where it has one, ends it.
    """

    def __init__(self, home: Path, config: Callable[[], Config]) -> None:
        self.home = home
        self._config = config
        self._made: dict[type, Any] = {}
        self.gone: Callable[[str], None] = _nobody_to_tell
        """Called with a principal's id when it may use nothing any more."""

    @property
    def config(self) -> Config:
        """The config as it is now."""
        return self._config()

    def use(self, kind: type[S]) -> S:
        """The one instance of `kind`."""
        made = self._made.get(kind)
        if made is None:
            made = self._made[kind] = kind.open(self)  # type: ignore[attr-defined]  # by convention, see above
        return made  # type: ignore[no-any-return]  # keyed by its own type

    def peek(self, kind: type[S]) -> S | None:
        """The instance of `kind` if something has used it."""
        return self._made.get(kind)

    def provide(self, kind: type, instance: Any) -> None:
        """Put in an instance made elsewhere, such as the computer the service chose."""
        self._made[kind] = instance

    def made(self) -> list[Any]:
        """The parts in use. One whose `is_busy()` is true keeps an on-demand service from ending itself."""
        return list(self._made.values())

    async def end_of(self, principal: str) -> int:
        """End what runs for a principal in any part that has an `end_of`; how many things that were."""
        ends = [getattr(part, "end_of", None) for part in self.made()]
        return sum([await end(principal) for end in ends if end is not None])

    async def aclose(self) -> None:
        """Close all parts, the newest first."""
        for kind in reversed(list(self._made)):
            part = self._made.pop(kind)
            close = getattr(part, "aclose", None)
            if close is not None:
                await close()


def _nobody_to_tell(_principal: str) -> None:
    return None
