"""That input happened on an X11 desktop, from XInput's raw events; which key it was is thrown away at once."""

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


async def input_seen(name: str) -> AsyncIterator[InputSeen]:
    """Each press, release and movement, for as long as it is iterated."""
    display = await to_thread.run_sync(_listening, name)
    try:
        while True:
            await anyio.wait_readable(display.fileno())
            for event in _drained(display):
                device, kind = _KINDS[event.evtype]
                yield InputSeen(device=device, kind=kind, at_ms=int(time.monotonic() * 1000))
    finally:
        close_display(display)


def _listening(name: str) -> "Display":
    from Xlib.ext import xinput

    display = open_display(name)
    if not display.has_extension("XInputExtension"):
        close_display(display)
        raise UnsupportedPlatform("This X server does not tell programs about input (no XInput extension).")
    display.xinput_query_version()
    mask = sum(1 << kind for kind in _KINDS)
    display.screen().root.xinput_select_events([(xinput.AllMasterDevices, mask)])
    display.sync()
    return display


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
