"""The long-lived parts of one service, each made on first use and closed in reverse order."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from computer_linker.config.schema import Config


class Service(Protocol):
    """A long-lived part: `open` makes it; an `aclose` coroutine, where it has one, ends it."""

    @classmethod
    def open(cls, services: "Services") -> Self: ...


S = TypeVar("S", bound=Service)


class Services:
    """Finds a long-lived part by its type, so that a new part needs no list kept by hand."""

    def __init__(self, home: Path, config: Callable[[], Config]) -> None:
        self.home = home
        self._config = config
        self._made: dict[type, Any] = {}

    @property
    def config(self) -> Config:
        """The config as it is now."""
        return self._config()

    def use(self, kind: type[S]) -> S:
        """The one instance of `kind`."""
        made = self._made.get(kind)
        if made is None:
            made = self._made[kind] = kind.open(self)
        return made  # type: ignore[no-any-return]  # keyed by its own type

    def peek(self, kind: type[S]) -> S | None:
        """The instance of `kind` if something has used it."""
        return self._made.get(kind)

    def provide(self, kind: type, instance: Any) -> None:
        """Put in an instance made elsewhere, such as the computer the service chose."""
        self._made[kind] = instance

    async def aclose(self) -> None:
        """Close all parts, the newest first."""
        for kind in reversed(list(self._made)):
            part = self._made.pop(kind)
            close = getattr(part, "aclose", None)
            if close is not None:
                await close()
