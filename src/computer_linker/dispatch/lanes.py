"""One lane a device: one holder at a time, a short lease between its acts, a queue, and the person before everyone."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from computer_linker.errors import Aborted, TimedOut
from computer_linker.model.principal import Principal


@dataclass(frozen=True, slots=True)
class Times:
    """How long things last, in seconds."""

    lease: float = 2.0
    """How long a lane stays with its holder after an act, so that a workflow is not torn apart."""
    turn: float = 60.0
    """How long one holder may go on while others wait."""
    queue: float = 60.0
    """How long a call waits for its turn."""
    quiet: float = 2.0
    """How long the person's mouse and keyboard must rest before acts go on."""


Key = tuple[str, str]


@dataclass(eq=False, slots=True)
class _Ticket:
    key: Key


@dataclass(slots=True)
class _Lane:
    holder: Key | None = None
    held_since: float = 0.0
    lease_until: float = 0.0
    stop: anyio.CancelScope | None = None
    """Of the act that runs now."""
    yields: bool = True
    """The act that runs now ends when the person's own hand is seen."""
    by_hand: bool = False
    """The person's own hand ended it."""
    ended_at: float = 0.0
    queue: list[_Ticket] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def next(self, now: float, turn_s: float) -> _Ticket | None:
        """Whose turn it is: the holder's while its lease lasts, else the first of the queue."""
        if self.stop is not None or not self.queue:
            return None
        has_rivals = any(ticket.key != self.holder for ticket in self.queue)
        is_over = has_rivals and now - self.held_since >= turn_s
        if self.holder is not None and now < self.lease_until and not is_over:
            return next((ticket for ticket in self.queue if ticket.key == self.holder), None)
        return next((ticket for ticket in self.queue if not is_over or ticket.key != self.holder), None)


class Lanes:
    """The lanes of this machine. A halt is kept in the state folder, so that only a person's resume ends it."""

    def __init__(self, marker: Path | None = None, times: Times = Times()) -> None:
        self._times = times
        self._lanes: dict[str, _Lane] = {}
        self._marker = marker
        self._is_halted: bool | None = None
        self._person_at = 0.0

    @property
    def is_halted(self) -> bool:
        if self._is_halted is None:
            self._is_halted = self._marker is not None and self._marker.exists()
        return self._is_halted

    @property
    def is_paused(self) -> bool:
        """True while acts wait for the person's hands to rest."""
        return time.monotonic() < self._person_at + self._times.quiet

    @asynccontextmanager
    async def hold(self, name: str, holder: Principal, *, yields: bool = True) -> AsyncIterator[None]:
        """Hold the lane while the body runs. What is for the person themselves does not yield to their hand.

        Raises:
            Aborted: a person halted the desktop, before or meanwhile, or took the mouse or the keyboard meanwhile.
            TimedOut: others kept it for too long.
        """
        lane = self._lanes.setdefault(name, _Lane())
        key = (holder.id, holder.session)
        await self._take(lane, key)
        try:
            with anyio.CancelScope() as stop:
                lane.stop, lane.yields, lane.by_hand = stop, yields, False
                yield
        finally:
            lane.stop, now = None, time.monotonic()
            # A command line's session ends with its one call: nothing of it could use a lease.
            lane.ended_at, lane.lease_until = now, now + (0.0 if holder.proof == "cli" else self._times.lease)
            lane.tell()
        if stop.cancelled_caught:
            raise _taken() if lane.by_hand else _halted()

    def halt(self) -> int:
        """Stop the act under way, send everyone in a queue away, and let nobody in until `resume`; how many it ended."""
        if self._marker is not None:
            self._marker.touch(0o600)
        self._is_halted, ended = True, 0
        for lane in self._lanes.values():
            ended += len(lane.queue) + (lane.stop is not None)
            lane.holder, lane.by_hand = None, False
            if lane.stop is not None:
                lane.stop.cancel()
            lane.tell()
        return ended

    async def until_still(self, seconds: float) -> bool:
        """Return once no act runs any more, so that nothing further is pressed; False when one still does after so long."""
        with anyio.move_on_after(seconds):
            for lane in list(self._lanes.values()):
                while lane.stop is not None:
                    await lane.changed.wait()
            return True
        return False

    def resume(self) -> bool:
        """Let calls in again; False when nothing was halted."""
        was_halted = self.is_halted
        if self._marker is not None:
            self._marker.unlink(missing_ok=True)
        self._is_halted = False
        return was_halted

    def person_moved(self, name: str, now: float, *, surely: bool = False, grace_s: float = 0.25) -> None:
        """The person may have used the mouse or a key; what an act of ours stirred up does not count.

        Where it is surely theirs, an act under way ends at once: it may be about to type into what they just clicked.
        """
        lane = self._lanes.get(name)
        if lane is None:
            return
        if surely:
            self._person_at = now
            if lane.stop is not None and lane.yields and not lane.stop.cancel_called:
                lane.by_hand = True
                lane.stop.cancel()
        elif lane.stop is None and now - lane.ended_at > grace_s:
            self._person_at = now

    def is_idle(self, name: str, seconds: float) -> bool:
        """True when nothing has used the lane for so long."""
        lane = self._lanes.get(name)
        return lane is None or (lane.stop is None and not lane.queue and time.monotonic() - lane.ended_at > seconds)

    async def _take(self, lane: _Lane, key: Key) -> None:
        if self.is_halted:
            raise _halted()
        ticket = _Ticket(key)
        lane.queue.append(ticket)
        try:
            await self._until_turn(lane, ticket)
        finally:
            lane.queue.remove(ticket)
            lane.tell()
        if lane.holder != key or time.monotonic() >= lane.lease_until:
            lane.holder, lane.held_since = key, time.monotonic()
        # Until the body has its own scope the lane must not look free.
        lane.stop = anyio.CancelScope()

    async def _until_turn(self, lane: _Lane, ticket: _Ticket) -> None:
        deadline = time.monotonic() + self._times.queue
        while True:
            now = time.monotonic()
            quiet_at = self._person_at + self._times.quiet
            if self.is_halted:
                raise _halted()
            if now >= quiet_at and lane.next(now, self._times.turn) is ticket:
                return
            if now >= deadline:
                raise TimedOut(
                    "The desktop is in use by another client or by the person at it.", seconds=self._times.queue
                )
            later = [
                moment for moment in (quiet_at, lane.lease_until, lane.held_since + self._times.turn) if moment > now
            ]
            await _within(lane.changed, min([deadline, *later]) - now)


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
