"""One queue per device: one holder at a time, a short lease between its acts, and priority for the person at the machine."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.facts import InputSeen
from computer_linker.errors import Aborted, LinkError, TimedOut
from computer_linker.model.principal import Principal


@dataclass(frozen=True, slots=True)
class Times:
    """Durations, in seconds."""

    lease: float = 2.0
    """How long a queue stays leased to its holder after an act, so that a workflow is not interrupted."""
    turn: float = 60.0
    """How long one holder may continue while others wait."""
    queue: float = 60.0
    """How long a call waits for its turn."""
    quiet: float = 2.0
    """How long the person's mouse and keyboard must rest before acts go on."""


Key = tuple[str, str]
_GRACE_S = 0.25
"""How long after an act of ours input may still be its echo."""


@dataclass(eq=False, slots=True)
class _Ticket:
    key: Key


@dataclass(slots=True)
class _DeviceQueue:
    holder: Key | None = None
    held_since: float = 0.0
    lease_until: float = 0.0
    stop: anyio.CancelScope | None = None
    """The scope of the running act."""
    yields: bool = True
    """The running act ends when the person's own input is detected."""
    by_hand: bool = False
    """The person's own input ended it."""
    ended_at: float = 0.0
    waiting: list[_Ticket] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def notify(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def next(self, now: float, turn_s: float) -> _Ticket | None:
        """Whose turn it is: the holder's while its lease lasts, else the first of the queue."""
        if self.stop is not None or not self.waiting:
            return None
        has_rivals = any(ticket.key != self.holder for ticket in self.waiting)
        is_over = has_rivals and now - self.held_since >= turn_s
        if self.holder is not None and now < self.lease_until and not is_over:
            return next((ticket for ticket in self.waiting if ticket.key == self.holder), None)
        return next((ticket for ticket in self.waiting if not is_over or ticket.key != self.holder), None)


_MARKER_EVERY_S = 0.2


class DeviceQueues:
    """The device queues of one process. A halt is a file in the state folder: only a person's resume ends it, and it holds
    for every process that acts on this desktop."""

    def __init__(self, marker: Path | None = None, times: Times = Times()) -> None:
        self._times = times
        self._queues: dict[str, _DeviceQueue] = {}
        self._marker = marker
        self._is_halted = False
        self._person_at = 0.0

    @property
    def is_halted(self) -> bool:
        return self._is_halted or (self._marker is not None and self._marker.exists())

    @property
    def is_paused(self) -> bool:
        """True while acts wait for the person's input to pause."""
        return time.monotonic() < self._person_at + self._times.quiet

    @asynccontextmanager
    async def hold(self, name: str, holder: Principal, *, yields: bool = True) -> AsyncIterator[None]:
        """Hold the queue while the body runs. A call on the person's behalf does not yield to their input.

        Raises:
            Aborted: a person halted the desktop, before or meanwhile, or took the mouse or the keyboard meanwhile.
            TimedOut: others held it for too long.
        """
        queue = self._queues.setdefault(name, _DeviceQueue())
        key = (holder.id, holder.session)
        await self._take(queue, key)
        try:
            with anyio.CancelScope() as stop:
                queue.stop, queue.yields, queue.by_hand = stop, yields, False
                self._cancel_when_halted(queue, stop)
                yield
        finally:
            queue.stop, now = None, time.monotonic()
            # A command line's session ends with its one call, and an approver makes none: neither could use a lease.
            is_over = holder.is_owner or holder.proof == "approver"
            queue.ended_at, queue.lease_until = now, now + (0.0 if is_over else self._times.lease)
            queue.notify()
        if stop.cancelled_caught:
            raise _taken() if queue.by_hand else _halted()

    def _cancel_when_halted(self, queue: _DeviceQueue, stop: anyio.CancelScope) -> None:
        """Cancel the running act when another process halts the desktop."""
        if queue.stop is not stop or self._marker is None:
            return
        if self._marker.exists():
            stop.cancel()
        else:
            asyncio.get_running_loop().call_later(_MARKER_EVERY_S, self._cancel_when_halted, queue, stop)

    def halt(self) -> int:
        """Stop the running act, abort all waiting calls, and admit none until `resume`; return how many were ended."""
        if self._marker is not None:
            self._marker.touch(0o600)
        self._is_halted, ended = True, 0
        for queue in self._queues.values():
            ended += len(queue.waiting) + (queue.stop is not None)
            queue.holder, queue.by_hand = None, False
            if queue.stop is not None:
                queue.stop.cancel()
            queue.notify()
        return ended

    async def until_still(self, seconds: float) -> bool:
        """Return once no act runs any more, so that nothing further is pressed; False when one still runs at the timeout."""
        with anyio.move_on_after(seconds):
            for queue in list(self._queues.values()):
                while queue.stop is not None:
                    await queue.changed.wait()
            return True
        return False

    def resume(self) -> bool:
        """Admit calls again; False when nothing was halted."""
        was_halted = self.is_halted
        if self._marker is not None:
            self._marker.unlink(missing_ok=True)
        self._is_halted = False
        return was_halted

    def person_moved(self, name: str, now: float, *, surely: bool = False) -> None:
        """Handle possible input of the person; events caused by an act of ours do not count.

        When it is certainly theirs, a running act ends at once: it may be about to type into what they just clicked.
        """
        queue = self._queues.get(name)
        if queue is None:
            return
        if surely:
            self._person_at = now
            if queue.stop is not None and queue.yields and not queue.stop.cancel_called:
                queue.by_hand = True
                queue.stop.cancel()
        elif queue.stop is None and now - queue.ended_at > _GRACE_S:
            self._person_at = now

    def is_idle(self, name: str, seconds: float) -> bool:
        """True when nothing has used the queue for this long."""
        queue = self._queues.get(name)
        return queue is None or (
            queue.stop is None and not queue.waiting and time.monotonic() - queue.ended_at > seconds
        )

    async def _take(self, queue: _DeviceQueue, key: Key) -> None:
        if self.is_halted:
            raise _halted()
        ticket = _Ticket(key)
        queue.waiting.append(ticket)
        try:
            await self._until_turn(queue, ticket)
        finally:
            queue.waiting.remove(ticket)
            queue.notify()
        if queue.holder != key or time.monotonic() >= queue.lease_until:
            queue.holder, queue.held_since = key, time.monotonic()
        # Until the body has its own cancel scope the queue must not look free.
        queue.stop = anyio.CancelScope()

    async def _until_turn(self, queue: _DeviceQueue, ticket: _Ticket) -> None:
        deadline = time.monotonic() + self._times.queue
        while True:
            now = time.monotonic()
            quiet_at = self._person_at + self._times.quiet
            if self.is_halted:
                raise _halted()
            if now >= quiet_at and queue.next(now, self._times.turn) is ticket:
                return
            if now >= deadline:
                raise TimedOut(
                    "The desktop is in use by another client or by the person at it.", seconds=self._times.queue
                )
            later = [
                moment for moment in (quiet_at, queue.lease_until, queue.held_since + self._times.turn) if moment > now
            ]
            most = _MARKER_EVERY_S if self._marker is not None else self._times.queue
            await _within(queue.changed, min([deadline, now + most, *later]) - now)


async def _within(event: asyncio.Event, seconds: float) -> None:
    with anyio.move_on_after(seconds):
        await event.wait()


def _taken() -> Aborted:
    return Aborted(
        "The person at the machine used the mouse or the keyboard, so the act was stopped and what it held was let go. "
        "Look at the desktop again before you go on.",
        person=True,
    )


def _halted() -> Aborted:
    return Aborted("A person halted the desktop. Only they can let it go on: computer-linker resume.", halted=True)


# Watches the person's own mouse and keyboard: their input ends the running act and makes the next one wait.

_IDLE_S = 30.0
_MOTIONS, _WITHIN_MS = 3, 500
"""A hand moves the mouse many times a second; vibration does so rarely."""


class PersonWatch:
    """Listens for input while the device queue is in use, and a little longer. It never receives which key it was."""

    def __init__(self, computer: Computer, queues: DeviceQueues, name: str = "desktop") -> None:
        self._computer = computer
        self._queues = queues
        self._name = name
        self._task: asyncio.Task[None] | None = None
        self._stop = anyio.CancelScope()
        self._is_possible = True
        self._motions: deque[int] = deque(maxlen=_MOTIONS)

    def wake(self) -> None:
        """Begin to listen, unless it does already or this computer cannot report input."""
        if self._is_possible and (self._task is None or self._task.done()):
            self._stop = anyio.CancelScope()
            self._task = asyncio.get_running_loop().create_task(self._listen())

    async def aclose(self) -> None:
        """Stop listening."""
        if self._task is not None and not self._task.done():
            # By its cancel scope: a task cancelled directly would leak the connection it is just opening.
            self._stop.cancel()
            await asyncio.wait([self._task], timeout=5)

    async def _listen(self) -> None:
        try:
            with self._stop:
                async with anyio.create_task_group() as group:
                    group.start_soon(self._until_idle, group.cancel_scope)
                    async with aclosing(self._computer.facts.input()) as seen:  # type: ignore[type-var]  # a generator
                        async for one in seen:
                            self._queues.person_moved(self._name, time.monotonic(), surely=self._is_theirs(one))
                    group.cancel_scope.cancel()
        except* LinkError:
            # Input cannot be observed here; only halt then stops an act.
            self._is_possible = False

    def _is_theirs(self, one: InputSeen) -> bool:
        """True for input that only a person makes: a press on a device, or steady movement of one.

        A release does not count: the key may have been pressed before the act, to begin it.
        """
        if one.by != "device" or one.kind == "released":
            return False
        if one.kind == "pressed":
            return True
        self._motions.append(one.at_ms)
        return len(self._motions) == _MOTIONS and one.at_ms - self._motions[0] <= _WITHIN_MS

    async def _until_idle(self, scope: anyio.CancelScope) -> None:
        # There is no event for an idle queue, so this polls.
        while not self._queues.is_idle(self._name, _IDLE_S):  # noqa: ASYNC110
            await anyio.sleep(_IDLE_S / 3)
        scope.cancel()
