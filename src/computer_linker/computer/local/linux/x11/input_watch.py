"""Detects input on an X11 desktop from XInput's raw events; the key itself is discarded at once.

Synthetic input (XTEST) comes from separate devices, so a person's input is distinguished from any program's.
"""

import struct
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Literal

import anyio
from anyio import to_thread

from computer_linker.computer.facets.facts import InputSeen
from computer_linker.computer.local.linux.x11.connection import close_display, open_display
from computer_linker.errors import ProviderUnavailable, UnsupportedPlatform

if TYPE_CHECKING:
    from Xlib.display import Display

_KINDS: dict[int, tuple[Literal["pointer", "keyboard"], Literal["moved", "pressed", "released"]]] = {
    13: ("keyboard", "pressed"),
    14: ("keyboard", "released"),
    15: ("pointer", "pressed"),
    16: ("pointer", "released"),
    17: ("pointer", "moved"),
}


_SOURCE = struct.Struct("=10xH")
"""The source device of a raw event: after the device, the time and the detail."""


async def input_seen(name: str) -> AsyncIterator[InputSeen]:
    """Each press, release and movement, for as long as it is iterated."""
    display, made_up = await to_thread.run_sync(_listening, name)
    try:
        while True:
            await anyio.wait_readable(display.fileno())
            for event in _drained(display):
                device, kind = _KINDS[event.evtype]
                by = _origin(event, made_up)
                yield InputSeen(device=device, kind=kind, at_ms=int(time.monotonic() * 1000), by=by)
    finally:
        close_display(display)


def _listening(name: str) -> "tuple[Display, frozenset[int]]":
    """A connection subscribed to raw input, and the ids of the XTEST devices."""
    from Xlib.ext import xinput

    display = open_display(name)
    if not display.has_extension("XInputExtension"):
        close_display(display)
        raise UnsupportedPlatform("This X server does not tell programs about input (no XInput extension).")
    # Since 2.1, input that another client grabbed is reported too.
    xinput.XIQueryVersion(
        display=display.display,
        opcode=display.display.get_extension_major(xinput.extname),
        major_version=2,
        minor_version=2,
    )
    devices = display.xinput_query_device(xinput.AllDevices).devices
    made_up = frozenset(device.deviceid for device in devices if " XTEST " in device.name)
    mask = sum(1 << kind for kind in _KINDS)
    display.screen().root.xinput_select_events([(xinput.AllMasterDevices, mask)])
    display.sync()
    return display, made_up


def _origin(event: Any, made_up: frozenset[int]) -> Literal["device", "program", "unknown"]:
    (source,) = _SOURCE.unpack_from(event.data) if len(event.data) >= _SOURCE.size else (0,)
    if not source:
        return "unknown"
    return "program" if source in made_up else "device"


def _drained(display: "Display") -> list[Any]:
    from Xlib.error import ConnectionClosedError

    events: list[Any] = []
    try:
        while display.pending_events():
            event: Any = display.next_event()
            if getattr(event, "evtype", None) in _KINDS:
                events.append(event)
    except ConnectionClosedError as error:
        raise ProviderUnavailable("The X server closed the connection.") from error
    return events
