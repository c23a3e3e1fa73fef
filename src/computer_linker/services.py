"""The registry of long-lived components of one service: each created on first use, closed in reverse order."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from computer_linker.config.schema import Config
from computer_linker.errors import LinkError
from computer_linker.model.envelope import Call
from computer_linker.model.principal import Principal

S = TypeVar("S")
Fact = str | int | float | bool | None


class Note(Protocol):
    """Records an event: its name, whose it is, what is known, its scope, the operation it belongs to and its failure."""

    async def __call__(
        self,
        name: str,
        principal: Principal,
        notes: Mapping[str, Fact],
        scope: str = "",
        parent: str | None = None,
        /,
        *,
        error: LinkError | None = None,
    ) -> str: ...


class CallAs(Protocol):
    """Runs a call as one client, with the same policy, approval and history as its own calls, and returns the envelope."""

    async def __call__(self, call: Call, principal: Principal, /) -> Mapping[str, Any]: ...


class Services:
    """Looks a component up by its type, so that a new one needs no list to be maintained.

    A component is a class with a constructor `open(services)`; an optional `aclose` coroutine closes it.
    """

    def __init__(self, home: Path, config: Callable[[], Config]) -> None:
        self.home = home
        self.current_config = config
        self._made: dict[type, Any] = {}
        self.gone: Callable[[str], None] = _ignore
        """Called with the id of a principal whose access was revoked."""
        self.note: Note = _no_note
        """Records in the history what the service itself saw happen; set once there is a dispatcher."""
        self.call: CallAs | None = None
        """Runs what a program in a sandbox asks the owner for; set once there is a dispatcher."""
        self.listens_on_http = False
        """Set by the HTTP server once its port is open."""

    @property
    def config(self) -> Config:
        """The config as it is now."""
        return self.current_config()

    @property
    def accepts_anyone_local(self) -> bool:
        """True while every process of this machine can call the service over HTTP without a token."""
        return self.listens_on_http and self.config.owner_token is None

    def use(self, kind: type[S]) -> S:
        """The one instance of `kind`."""
        made = self._made.get(kind)
        if made is None:
            made = self._made[kind] = kind.open(self)  # type: ignore[attr-defined]  # by convention, see above
        return made  # type: ignore[no-any-return]  # keyed by its own type

    def peek(self, kind: type[S]) -> S | None:
        """The instance of `kind` if it was created already."""
        return self._made.get(kind)

    def provide(self, kind: type, instance: Any) -> None:
        """Register an instance created elsewhere, such as the computer backend."""
        self._made[kind] = instance

    def made(self) -> list[Any]:
        """The components in use. One whose `is_busy()` is true keeps an on-demand service from stopping when idle."""
        return list(self._made.values())

    async def end_of(self, principal: str | None) -> int:
        """End what runs for a principal, or for all, in each component with an `end_of`; return how many things ran."""
        ends = [getattr(part, "end_of", None) for part in self.made()]
        return sum([await end(principal) for end in ends if end is not None])

    async def aclose(self) -> None:
        """Close all components, the newest first."""
        for kind in reversed(list(self._made)):
            part = self._made.pop(kind)
            close = getattr(part, "aclose", None)
            if close is not None:
                await close()


def _ignore(_principal: str) -> None:
    return None


async def _no_note(
    _name: str,
    _principal: Principal,
    _notes: Mapping[str, Fact],
    _scope: str = "",
    _parent: str | None = None,
    /,
    *,
    error: LinkError | None = None,
) -> str:
    return ""
