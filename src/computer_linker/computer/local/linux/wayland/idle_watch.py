"""That someone is at a Wayland desktop, from the compositor's own count of idle time.

Compositors tell no program whose input it was, and what our own virtual devices send counts too. So this tells a hand only
between acts: while the desktop is not idle although nothing of ours acts.
"""

import time
from collections.abc import AsyncIterator, Mapping

import anyio
from anyio import to_thread

from computer_linker.computer.facets.facts import InputSeen
from computer_linker.computer.local.linux.wayland.wire import Event, Wire
from computer_linker.errors import LinkError

STANDARD, OLDER = "ext_idle_notifier_v1", "org_kde_kwin_idle"
_IDLE_MS = 100
"""So long without input is idle; a hand at work never pauses for much longer."""
_AGAIN_S = 0.2
_IDLE, _RESUMED = 0, 1


async def activity_seen(environ: Mapping[str, str]) -> AsyncIterator[InputSeen]:
    """One sign when the desktop stops being idle, and another every moment while it is not."""
    watch = await to_thread.run_sync(_Watch, environ)
    try:
        while True:
            with anyio.move_on_after(_AGAIN_S if watch.is_active else None):
                await anyio.wait_readable(watch.wire.socket)
                watch.wire.pump()
            if watch.has_resumed or watch.is_active:
                watch.has_resumed = False
                yield InputSeen(device="pointer", kind="moved", at_ms=int(time.monotonic() * 1000))
    finally:
        watch.wire.close()


class _Watch:
    """A connection on which the compositor tells when the seat falls idle and when it no longer is."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.is_active = self.has_resumed = False
        self.wire = Wire(environ)
        try:
            self._begin()
        except LinkError:
            self.wire.close()
            raise

    def _begin(self) -> None:
        wire = self.wire
        seat = wire.bind("wl_seat", 1)
        # New objects are numbered in the order in which the compositor learns of them.
        if STANDARD in wire.globals:
            notifier = wire.bind(STANDARD, 1)
            wire.request(notifier, 1, "nuo", wire.new(self._take), _IDLE_MS, seat)
        else:
            notifier = wire.bind(OLDER, 1)
            wire.request(notifier, 0, "nou", wire.new(self._take), seat, _IDLE_MS)
        wire.roundtrip()

    def _take(self, event: Event) -> None:
        if event.opcode == _IDLE:
            self.is_active = False
        elif event.opcode == _RESUMED:
            self.is_active = self.has_resumed = True
