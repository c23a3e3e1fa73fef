"""A remote control session of a desktop: input events over the portal's interface or mutter's own."""

from dataclasses import dataclass
from typing import Any, Protocol

import anyio

from computer_linker.computer.local.linux.wayland.portal.bus import BusRefusal, SessionBus
from computer_linker.errors import OsPermissionRequired, ProviderUnavailable
from computer_linker.model.geometry import Rect

MUTTER = "org.gnome.Mutter.RemoteDesktop"
_CAST = "org.gnome.Mutter.ScreenCast"
_SESSION = f"{MUTTER}.Session"
_MUTTER_EVENTS = {
    "place": ("NotifyPointerMotionAbsolute", "sdd"),
    "motion": ("NotifyPointerMotionRelative", "dd"),
    "button": ("NotifyPointerButton", "ib"),
    "wheel": ("NotifyPointerAxisDiscrete", "ui"),
    "key": ("NotifyKeyboardKeysym", "ub"),
}
_HIDDEN_CURSOR = 0
_SHIFT = 0xFFE1
_GONE = ("UnknownMethod", "UnknownObject", "AccessDenied")
_AT = "/org/gnome/Mutter/RemoteDesktop"


@dataclass(frozen=True, slots=True)
class Stream:
    """One display as the session names it."""

    id: str | int
    area: Rect
    """Its rectangle on the desktop."""
    pixels_per_unit: float = 1.0
    """The session's coordinates per desktop unit."""


@dataclass(frozen=True, slots=True)
class Screen:
    """A display that a session must include."""

    name: str
    area: Rect
    pixels_per_unit: float


@dataclass(frozen=True, slots=True)
class BusBinding:
    """The bus name, interface and methods of a session's events."""

    name: str
    path: str
    interface: str
    events: dict[str, tuple[str, str]]
    """The method and the signature of each event."""
    lead: tuple[Any, ...] = ()
    """Arguments before an event's own values."""
    steps_per_notch: int = 1
    """How many steps applications treat as one wheel notch."""


class RemoteInput:
    """An open session. When its connection ends, the compositor ends it too and releases what it held."""

    def __init__(self, bus: SessionBus, binding: BusBinding, streams: list[Stream]) -> None:
        self.streams = streams
        self.is_ended = False
        """True once the desktop has ended it."""
        self._bus = bus
        self._binding = binding

    @property
    def is_open(self) -> bool:
        return self._bus.is_connected and not self.is_ended

    def end(self, _arguments: list[Any]) -> None:
        """Handle the compositor's signal that the session has ended."""
        self.is_ended = True

    async def move(self, stream: Stream, x: float, y: float) -> None:
        """Put the pointer at a desktop point of that display."""
        at = ((place - start) * stream.pixels_per_unit for place, start in ((x, stream.area.x), (y, stream.area.y)))
        await self._notify("place", stream.id, *at)

    async def create_devices(self) -> None:
        """Make the compositor create both devices, by a zero movement and a shift key press, which have no effect."""
        await self._notify("motion", 0.0, 0.0)
        await self.keysym(_SHIFT, down=True)
        await self.keysym(_SHIFT, down=False)

    async def button(self, code: int, *, down: bool) -> None:
        await self._notify("button", code, down)

    async def turn(self, axis: int, steps: int) -> None:
        """Turn the wheel by whole notches: axis 0 is down, 1 is right."""
        await self._notify("wheel", axis, steps * self._binding.steps_per_notch)

    async def keysym(self, number: int, *, down: bool) -> None:
        await self._notify("key", number, down)

    async def aclose(self) -> None:
        """End the session."""
        await self._bus.aclose()

    async def _notify(self, event: str, *values: Any) -> None:
        if self.is_ended:
            raise ended()
        bound = self._binding
        method, signature = bound.events[event]
        plain = [int(value) if isinstance(value, bool) and signature[-1] == "u" else value for value in values]
        try:
            # Awaited to its end: portals handle calls in any order, and a release must not overtake its press.
            with anyio.CancelScope(shield=True):
                await self._bus.call(
                    bound.name, bound.path, f"{bound.interface}.{method}", signature, *bound.lead, *plain
                )
        except BusRefusal as error:
            if error.name.endswith(_GONE):
                self.is_ended = True
                raise ended() from error
            raise


class SessionOpener(Protocol):
    """Opens remote control sessions."""

    async def open(self, screens: list[Screen]) -> RemoteInput:
        """Open a session that includes these displays.

        Raises:
            OsPermissionRequired: the person has not allowed it, or not yet.
            ProviderUnavailable: the desktop cannot.
        """
        ...

    async def aclose(self) -> None:
        """Withdraw a request that is still open."""
        ...


class MutterOpener:
    """Opens sessions through mutter's own interface: for desktops without a portal, such as a headless one."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def open(self, screens: list[Screen]) -> RemoteInput:
        """A session over all displays. Absolute motion needs a stream of each, though its frames are not read."""
        bus = await SessionBus.open(self._address)
        try:
            return await _mutter_session(bus, screens)
        except BaseException:
            await bus.aclose()
            raise

    async def aclose(self) -> None:
        """Nothing to withdraw."""


async def _mutter_session(bus: SessionBus, screens: list[Screen]) -> RemoteInput:
    from dbus_fast import Variant

    session = await bus.call(MUTTER, _AT, f"{MUTTER}.CreateSession")
    number = await bus.get(MUTTER, session, f"{_SESSION}.SessionId")
    options = {"remote-desktop-session-id": Variant("s", number)}
    cast = await bus.call(_CAST, "/org/gnome/Mutter/ScreenCast", f"{_CAST}.CreateSession", "a{sv}", options)
    streams = []
    for screen in screens:
        shown = {"cursor-mode": Variant("u", _HIDDEN_CURSOR)}
        path = await bus.call(_CAST, cast, f"{_CAST}.Session.RecordMonitor", "sa{sv}", screen.name, shown)
        streams.append(Stream(path, screen.area, screen.pixels_per_unit))
    opened = RemoteInput(bus, BusBinding(MUTTER, session, _SESSION, _MUTTER_EVENTS), streams)
    await bus.on_signal(session, f"{_SESSION}.Closed", opened.end)
    try:
        await bus.call(MUTTER, session, f"{_SESSION}.Start")
    except BusRefusal as error:
        raise ProviderUnavailable(
            "GNOME's compositor did not start remote control; it needs PipeWire to run. Start pipewire, then retry."
        ) from error
    return opened


def ended() -> OsPermissionRequired:
    """The error after the desktop, or the person, has ended the session."""
    remedy = "Start the service again to ask for it anew."
    return OsPermissionRequired(
        f"Remote control of this desktop was ended, by the person or by the desktop. {remedy}",
        grant="input",
        remedy=remedy,
    )
