"""approvals.json: the standing approvals, the clients whose dialog may approve, and where requests are pushed to."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import anyio
from anyio import to_thread
from pydantic import Field, ValidationError

from computer_linker.approvals.request import ApprovalRequest
from computer_linker.approvals.standing import Standing
from computer_linker.config.private import check_owner
from computer_linker.config.store import write_whole
from computer_linker.errors import ConfigInvalid, LimitExceeded
from computer_linker.model.base import Model
from computer_linker.model.principal import Principal
from computer_linker.system import os

FILE_NAME = "approvals.json"
_MAX_STANDING, _MAX_CLIENTS, _MAX_PUSH = 200, 50, 10
T = TypeVar("T")


class AllowedClient(Model):
    """A client whose own dialog may approve: it then speaks for the owner."""

    name: Annotated[str, Field(description="The name that the client gives itself.")]
    allowed_at: str


class PushTarget(Model):
    """An address that is notified when a request waits."""

    id: str
    url: str
    kind: Literal["ntfy", "webhook"]
    content: Annotated[bool, Field(description="Whether the operation, its scope and its client are sent along.")]
    token: Annotated[str | None, Field(description="Sent as bearer token.")] = None
    secret: Annotated[str, Field(description="Key of the signature.")]
    added_at: str


class Kept(Model):
    standing: list[Standing] = []
    clients: list[AllowedClient] = []
    push: list[PushTarget] = []


class ApprovalStore:
    """What the owner decided beyond one request. In memory, and written whole at each change."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._kept = _read(home)
        self._writing = anyio.Lock()

    @property
    def standing(self) -> list[Standing]:
        """The standing approvals whose time is not over."""
        return [one for one in self._kept.standing if not one.is_over()]

    @property
    def clients(self) -> list[AllowedClient]:
        return self._kept.clients

    @property
    def push(self) -> list[PushTarget]:
        return self._kept.push

    def covering(self, asked: ApprovalRequest) -> Standing | None:
        """The standing yes that covers this request."""
        return next((one for one in self._kept.standing if one.covers(asked)), None)

    def has(self, standing_id: str, policy: str) -> bool:
        """Whether this yes still stands, under the same rules."""
        return any(one.id == standing_id and one.policy == policy for one in self.standing)

    def allows_client(self, who: Principal) -> bool:
        """Whether the owner lets this client's dialog approve. A remote client shows its dialogs elsewhere: never."""
        if who.is_remote or who.client is None:
            return False
        # A client calls itself NAME/VERSION; the owner allows a name.
        names = (who.client, who.client.rpartition("/")[0])
        return any(one.name in names for one in self.clients)

    def refuse_full(self) -> None:
        """Raise LimitExceeded where no further standing approval fits."""
        if len(self.standing) >= _MAX_STANDING:
            raise _full(_MAX_STANDING)

    def add(self, one: Standing | AllowedClient | PushTarget) -> None:
        """Add one; `save` makes it last. Raises LimitExceeded."""
        match one:
            case Standing():
                self._change(standing=_with(self.standing, one, _MAX_STANDING))
            case AllowedClient():
                others = [client for client in self.clients if client.name != one.name]
                self._change(clients=_with(others, one, _MAX_CLIENTS))
            case PushTarget():
                self._change(push=_with(self.push, one, _MAX_PUSH))

    def keep_only(
        self,
        *,
        standing: Callable[[Standing], bool] = lambda _: True,
        clients: Callable[[AllowedClient], bool] = lambda _: True,
        push: Callable[[PushTarget], bool] = lambda _: True,
    ) -> int:
        """Remove what these refuse; return how many were removed."""
        before = len(self.standing) + len(self.clients) + len(self.push)
        self._change(
            standing=[one for one in self.standing if standing(one)],
            clients=[one for one in self.clients if clients(one)],
            push=[one for one in self.push if push(one)],
        )
        return before - len(self.standing) - len(self.clients) - len(self.push)

    async def save(self) -> None:
        """Write the file, in a worker thread. Raises ConfigInvalid when it cannot be written."""
        async with self._writing:
            raw = self._kept.model_dump_json(by_alias=True, indent=1).encode() + b"\n"
            await to_thread.run_sync(write_whole, self._home, FILE_NAME, raw)

    def _change(
        self,
        standing: list[Standing] | None = None,
        clients: list[AllowedClient] | None = None,
        push: list[PushTarget] | None = None,
    ) -> None:
        self._kept = Kept(
            standing=self._kept.standing if standing is None else standing,
            clients=self._kept.clients if clients is None else clients,
            push=self._kept.push if push is None else push,
        )


def _with(those: list[T], one: T, most: int) -> list[T]:
    if len(those) >= most:
        raise _full(most)
    return [*those, one]


def _full(most: int) -> LimitExceeded:
    return LimitExceeded(f"There are {most} of these already. Revoke some first: computer-linker approvals list.")


def _read(home: Path) -> Kept:
    path = home / FILE_NAME
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        return Kept()
    with os.fdopen(fd, "rb") as file:
        check_owner(os.fstat(fd), FILE_NAME, f"chmod 600 {path}")
        try:
            return Kept.model_validate_json(file.read(), by_alias=True, by_name=False)
        except ValidationError as error:
            place = ".".join(str(part) for part in error.errors()[0]["loc"]) or "its text"
            raise ConfigInvalid(
                f"{FILE_NAME} is not valid: {place}: {error.errors()[0]['msg']}", f"correct or remove {path}"
            ) from None
