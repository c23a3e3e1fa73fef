"""The live sessions of clients: who is connected and how, what runs for it, and how the owner ends it at once."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

import anyio

from computer_linker.dispatch.pause import stopped_alone, stopped_by_pause
from computer_linker.errors import Aborted, LinkError, PermissionDenied
from computer_linker.model.event import Event
from computer_linker.model.ids import new_handle
from computer_linker.model.principal import NO_SESSION, Principal, account_of
from computer_linker.services import Services

_MAX = 2000
_IDLE_S = 3600.0
_SHARED = ("http-", "fleet-")
"""Connections of these transports carry several clients, and have no end that could be seen."""
Key = tuple[str, ...]


@dataclass(eq=False)
class LiveSession:
    """One client. `closes` end its connections; it is empty where a transport has none to close."""

    id: str
    principal: Principal
    since: float
    last_seen: float
    calls: int = 0
    running: dict[str, "RunningCall"] = field(default_factory=dict)
    """Its calls by operation id."""
    closes: list[Callable[[], None]] = field(default_factory=list)
    current: Callable[[], Principal] | None = None
    """The principal as it is known by now: a client names itself after it has connected."""
    is_ended: bool = False


@dataclass(eq=False)
class RunningCall:
    """One call while it runs: its session (none for the owner's own), and how it was stopped."""

    session: LiveSession | None
    op: str = ""
    on: str = ""
    """The id of the scope that it names."""
    since: float = field(default_factory=time.time)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    over: anyio.Event = field(default_factory=anyio.Event)
    is_stopped_alone: bool = False

    def failure(self, event: Event) -> LinkError:
        """The failure of this call once it was stopped: alone, with its session, or with every client's."""
        done = _done_by_then(event)
        if self.is_stopped_alone:
            return stopped_alone(done)
        if self.session is not None and self.session.is_ended:
            return _ended_by_owner(done)
        return stopped_by_pause(done)


class LiveSessions:
    """Every session of this service, by the principal that the transport proved."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[Key, LiveSession] = OrderedDict()
        self._ended: OrderedDict[Key, None] = OrderedDict()
        self.left: Callable[[Principal], None] = _unnoticed
        """Called with the principal of a client that has disconnected; set by the service."""

    @classmethod
    def open(cls, _services: Services) -> Self:
        return cls()

    @contextmanager
    def connected(self, current: Callable[[], Principal], close: Callable[[], None]) -> Iterator[None]:
        """List a connection from its start to its end, also while it calls nothing."""
        principal = current()
        session = self._seen(_key(principal), principal)
        session.current = current
        session.closes.append(close)
        try:
            yield
        finally:
            session.closes.remove(close)
            if not session.closes:
                self._sessions.pop(_key(principal), None)
                self.left(principal)

    @contextmanager
    def running(self, principal: Principal, operation_id: str, op: str = "", on: str = "") -> Iterator[RunningCall]:
        """Count a client's call, and end it with its session. Raises PermissionDenied for a session that was ended."""
        if principal.is_owner:
            yield RunningCall(None)
            return
        session = self.seen(principal)
        session.calls += 1
        call = session.running[operation_id] = RunningCall(session, op, on)
        try:
            yield call
        finally:
            session.running.pop(operation_id, None)
            call.over.set()

    async def stop_call(self, operation_id: str) -> Principal | None:
        """End one call of a client, wait until it has ended, and return whose it was; None when none runs under this id."""
        found = (one.running[operation_id] for one in self._sessions.values() if operation_id in one.running)
        call = next(found, None)
        if call is None or call.session is None:
            return None
        call.is_stopped_alone = True
        call.scope.cancel()
        await call.over.wait()
        return call.session.principal

    def seen(self, principal: Principal) -> LiveSession:
        """The session of a caller. Raises PermissionDenied once the owner has ended it."""
        if self._ended and self.is_ended(principal):
            raise PermissionDenied("The owner of this computer has ended this session.", rule="session_ended")
        return self._seen(_key(principal), principal)

    def is_ended(self, principal: Principal) -> bool:
        """True when the owner has ended this session, and its transport has no connection that could be closed."""
        return _key(principal) in self._ended or (account_of(principal.id), principal.session) in self._ended

    def listed(self) -> list[LiveSession]:
        """The sessions, the last seen first; of those without a connection, the ones of the last hour."""
        now = time.time()
        live = [one for one in self._sessions.values() if one.closes or one.running or now - one.last_seen < _IDLE_S]
        for one in live:
            one.principal = one.current() if one.current is not None else one.principal
        return sorted(live, key=lambda one: -one.last_seen)

    def end(self, session: LiveSession) -> None:
        """End its calls and its connection; without a connection, refuse its further calls.

        An OAuth client ends with its tokens; with a new consent it may come again under the same name.
        """
        session.is_ended = True
        key = _key(session.principal)
        self._sessions.pop(key, None)
        if not session.closes and session.principal.proof != "oauth":
            self._ended[key] = None
            if session.principal.session != NO_SESSION:
                # Its name is the client's own claim; the session id is a handle that only it holds.
                self._ended[(account_of(session.principal.id), session.principal.session)] = None
            while len(self._ended) > _MAX:
                self._ended.popitem(last=False)
        for call in list(session.running.values()):
            call.scope.cancel()
        for close in list(session.closes):
            close()

    def let_back(self, principal: str) -> None:
        """Forget which clients of a principal were ended: it has another credential by now, and each needs the new one."""
        for key in [key for key in self._ended if key[0] == principal]:
            del self._ended[key]

    def stop_all(self) -> int:
        """End the calls of every client, and no session; return how many there were."""
        running = [call for one in self._sessions.values() for call in one.running.values()]
        for call in running:
            call.scope.cancel()
        return len(running)

    def _seen(self, key: Key, principal: Principal) -> LiveSession:
        now = time.time()
        session = self._sessions.get(key)
        if session is None:
            session = self._sessions[key] = LiveSession(new_handle("live"), principal, now, now)
            self._make_room()
        session.last_seen = now
        session.principal = principal
        self._sessions.move_to_end(key)
        return session

    def _make_room(self) -> None:
        """Forget the longest silent sessions past the limit: a client can give itself any number of names."""
        idle = [key for key, one in self._sessions.items() if not one.closes and not one.running]
        for key in idle[: max(0, len(self._sessions) - _MAX)]:
            del self._sessions[key]


def _unnoticed(_principal: Principal) -> None:
    return None


def _done_by_then(event: Event) -> str | None:
    """What a stopped call had done, as a sentence; None when nothing had begun."""
    if not event.steps_begun:
        return "Look at what it did before you repeat it." if event.intended else None
    steps = f"{event.steps_ended} of its steps had ended" if event.steps_ended else "None of its steps had ended"
    under_way = ", and one was under way" if event.steps_begun > event.steps_ended else ""
    return f"{steps}{under_way}: look at what they did before you repeat it. get_operation_history has them."


def _ended_by_owner(done: str | None) -> LinkError:
    """The failure of a call whose session the owner ended."""
    if done is None:
        return PermissionDenied(
            "The owner of this computer has ended this session. Nothing was done.", rule="session_ended"
        )
    return Aborted(
        f"The owner of this computer has ended this session and stopped this call while it ran. {done}",
        effect="unverifiable",
    )


def _key(principal: Principal) -> Key:
    account = account_of(principal.id)
    if principal.connection.startswith(_SHARED):
        return (account, principal.session, principal.connection, principal.client or "")
    return (account, principal.connection, "connection")
