"""The Wayland seat: the input devices that applications see."""

import time

from computer_linker.computer.local.linux.wayland.wire import Event, Wire

POINTER, KEYBOARD = 1, 2
_NOTICED_S = 0.15


class Seat:
    """The first seat and its devices."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._devices = 0
        self.number = wire.bind("wl_seat", 1, self._take)
        wire.roundtrip()

    def _take(self, event: Event) -> None:
        if event.opcode == 0:
            self._devices = event.unsigned()

    def wait_noticed(self, had_before: bool) -> None:
        """After a first pointer or keyboard: give applications time to notice it, or they miss its first events."""
        self._wire.roundtrip()
        if not had_before:
            time.sleep(_NOTICED_S)

    def wait_for(self, devices: int) -> None:
        """Wait until the seat has all of these; raises when the compositor sends nothing for several seconds."""
        self._wire.until(lambda: self._devices & devices == devices)

    def has(self, device: int) -> bool:
        """True when the seat has such a device now."""
        self._wire.roundtrip()
        return bool(self._devices & device)
