"""Approval at a terminal: the waiting requests, and the terminal's presence, which makes calls wait for an answer."""

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

import anyio
from anyio import to_thread
from pydantic import Field

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.choices import Choice, choices_of
from computer_linker.approvals.request import Answer, ApprovalRequest
from computer_linker.approvals.standing import is_in_force
from computer_linker.model.base import Model
from computer_linker.model.event import Way
from computer_linker.policy.visible_text import escaped
from computer_linker.services import Services
from computer_linker.system import os

_WAIT_S = 20.0
_PRESENT_S = 3.0
"""How long a terminal counts as present after its last message."""


class WaitingRequest(Model):
    """A request that waits for a person, as a terminal shows it; never the token."""

    id: str
    op: str
    scope: str
    digest: str
    preview: Annotated[str, Field(description="The exact request.")]
    details: Annotated[list[str], Field(description="What it would change or touch.")]
    principal: str
    client: Annotated[str | None, Field(description="What the client calls itself.")]
    asker: Annotated[str, Field(description="Both, as people are shown them.")]
    seconds_left: int
    can_be_allowed: Annotated[bool, Field(description="False where it could not be shown: it can only be denied.")] = (
        True
    )
    choices: Annotated[list[Choice], Field(description="Answers that stand, with what each would cover.")] = []
    picture: Annotated[str | None, Field(description="A private file with a picture of where it would act.")] = None


class StandingApproval(Model):
    """A yes that stands, for display."""

    id: str
    covers: str
    expires_at: Annotated[str | None, Field(description="Null until it is revoked.")]
    by: str
    way: Way
    answer: Annotated[str, Field(description="The operation id of the answer's event.")]
    in_force: Annotated[bool, Field(description="False where the scope's rules are others by now: it covers nothing.")]


class PushAddress(Model):
    """An address that requests are announced at, without its path, which may be a secret."""

    id: str
    kind: str
    host: str
    content: bool


class OpenedPage(Model):
    """An approval page that a browser has open: it can answer for the owner."""

    id: str
    address: Annotated[str, Field(description="Where the browser is.")]
    link: Annotated[str, Field(description="What its link came from: `phone`, or the id of an announcing address.")]
    opened_at: str
    last_seen_at: str


class OpenHost(Model):
    """A host that the owner opened to the programs of a scope for a while, when it was asked for."""

    id: str
    scope: str
    host: str
    expires_at: str


class Listed(Model):
    waiting: list[WaitingRequest]
    standing: list[StandingApproval] = []
    hosts: Annotated[list[OpenHost], Field(description="Hosts that are open for a while.")] = []
    clients: Annotated[list[str], Field(description="Clients whose dialog may approve.")] = []
    push: Annotated[list[PushAddress], Field(description="Where requests are announced.")] = []
    pages: Annotated[list[OpenedPage], Field(description="Approval pages that are open in a browser.")] = []


class TerminalApprovals:
    """The owner's terminals. While one is present, calls wait for its answer."""

    def __init__(self, services: Services) -> None:
        self._services, self._approvals = services, services.use(Approvals)
        self._choices: dict[str, list[Choice]] = {}
        self._pictures, self._one = Pictures(services.home / "approvals"), anyio.CapacityLimiter(1)
        self._presence: asyncio.Task[None] | None = None
        self._leases: dict[object, float] = {}
        """Until when each terminal counts as being there."""
        self._left = asyncio.Event()

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services)

    async def aclose(self) -> None:
        """Stop waiting for terminals and remove the pictures."""
        self._pictures.of([])
        if self._presence is not None:
            self._presence.cancel()
            await asyncio.wait([self._presence], timeout=5)

    async def waiting(self) -> Listed:
        """Return the waiting requests, and what the owner allowed beyond one. Pictures of others are removed."""
        waiting = self._approvals.waiting()
        places = await to_thread.run_sync(self._pictures.of, waiting, limiter=self._one)
        choices = {asked.id: await self.choices(asked) for asked in waiting}
        store, config = self._approvals.store, self._services.current_config()
        return Listed(
            waiting=[shown(asked, places.get(asked.id), choices[asked.id]) for asked in waiting],
            standing=[
                StandingApproval(
                    id=one.id,
                    covers=one.text,
                    expires_at=one.expires_at,
                    by=one.by,
                    way=one.way,
                    answer=one.answer,
                    in_force=is_in_force(one, config.scope(one.scope)),
                )
                for one in store.standing
            ],
            clients=[one.name for one in store.clients],
            push=[
                PushAddress(id=one.id, kind=one.kind, host=urlsplit(one.url).hostname or "", content=one.content)
                for one in store.push
            ],
        )

    async def choices(self, asked: ApprovalRequest) -> list[Choice]:
        """The answers of a request that stand; the history is read once for each."""
        if asked.id not in self._choices:
            waiting = {one.id for one in self._approvals.waiting()}
            self._choices = {known: kept for known, kept in self._choices.items() if known in waiting}
            self._choices[asked.id] = await choices_of(self._services, asked)
        return self._choices[asked.id]

    async def changed(self, known: set[str]) -> Listed:
        """Return when the waiting requests differ from those shown, or after a while; meanwhile calls wait for the terminal."""
        lease = object()
        self.stay(lease, _WAIT_S + _PRESENT_S)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_WAIT_S):
                    while {asked.id for asked in self._approvals.waiting()} == known:
                        await self._approvals.changed()
            self.stay()
        finally:
            # Also when the terminal was closed: calls do not wait for an absent person.
            del self._leases[lease]
            self._left.set()
        return await self.waiting()

    def stay(self, lease: object = "here", seconds: float = _PRESENT_S) -> None:
        """Mark a terminal as present for this long."""
        loop = asyncio.get_running_loop()
        self._leases[lease] = loop.time() + seconds
        if self._presence is None or self._presence.done():
            self._presence = loop.create_task(self._be_there())

    async def _be_there(self) -> None:
        """Register as an approver until every terminal has gone; calls that still wait are then answered."""
        gone = anyio.Event()

        async def person(asked: ApprovalRequest) -> Answer | None:
            # The answer comes by `approvals.allow` or `approvals.deny`; this only keeps the call waiting for it.
            await gone.wait()
            return None

        loop = asyncio.get_running_loop()
        async with self._approvals.attached("terminal", person):
            while (left := max(self._leases.values(), default=0.0) - loop.time()) > 0:
                self._left.clear()
                with anyio.move_on_after(left):
                    await self._left.wait()
        gone.set()


def shown(asked: ApprovalRequest, picture: str | None = None, choices: Sequence[Choice] = ()) -> WaitingRequest:
    """Return a waiting request for display, with control characters escaped."""
    return WaitingRequest(
        id=asked.id,
        op=asked.op,
        scope=asked.scope,
        digest=asked.digest,
        preview=asked.preview,
        details=[] if asked.about is None else list(asked.about.lines),
        principal=escaped(asked.principal),
        client=asked.client,
        asker=asked.asker,
        seconds_left=asked.seconds_left,
        can_be_allowed=asked.can_be_allowed,
        choices=list(choices),
        picture=picture,
    )


class Pictures:
    """A subfolder of the state folder with pictures of the requests waiting now."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, waiting: Sequence[ApprovalRequest]) -> dict[str, str]:
        """Write the picture of each waiting request and return the paths by id; blocking. Others are removed."""
        wanted = {f"{asked.id}.png": asked for asked in waiting if asked.picture is not None}
        if wanted:
            self._folder.mkdir(mode=0o700, exist_ok=True)
        there = {path.name for path in self._folder.iterdir()} if self._folder.is_dir() else set()
        for name in there - wanted.keys():
            (self._folder / name).unlink(missing_ok=True)
        for name in wanted.keys() - there:
            self._write(name, wanted[name].picture or b"")
        return {asked.id: os.fspath(self._folder / name) for name, asked in wanted.items()}

    def _write(self, name: str, data: bytes) -> None:
        # Under a temporary name first, so that no reader opens half a picture.
        fresh = self._folder / f".{name}"
        fresh.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(fresh, flags, 0o600), "wb") as file:
            file.write(data)
        fresh.replace(self._folder / name)
