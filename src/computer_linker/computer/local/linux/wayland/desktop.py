"""Provides the Wayland facets this compositor supports, and the reasons for the missing ones."""

import time
from collections.abc import AsyncIterator, Callable, Mapping

import anyio
from anyio import to_thread

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.facts import InputSeen
from computer_linker.computer.local.linux.apps import LinuxApps
from computer_linker.computer.local.linux.facts import LinuxFacts
from computer_linker.computer.local.linux.notifications import BusNotifications
from computer_linker.computer.local.linux.wayland.clipboard import WaylandClipboard
from computer_linker.computer.local.linux.wayland.connection import Connection
from computer_linker.computer.local.linux.wayland.keyboard import WaylandKeyboard
from computer_linker.computer.local.linux.wayland.pointer import WaylandPointer
from computer_linker.computer.local.linux.wayland.portal.screen import PortalScreen
from computer_linker.computer.local.linux.wayland.screen import WaylandScreen
from computer_linker.computer.local.linux.wayland.sway_windows import SwayWindows
from computer_linker.computer.local.linux.wayland.wire import Event, Wire
from computer_linker.computer.manifest import Absent, FacetName
from computer_linker.errors import LinkError, ProviderUnavailable, UnsupportedPlatform

STANDARD, OLDER = "ext_idle_notifier_v1", "org_kde_kwin_idle"
_IDLE_MS = 100
"""The desktop counts as idle after this time; a person's input rarely pauses for longer."""
_AGAIN_S = 0.2
_IDLE, _RESUMED = 0, 1


async def activity_seen(environ: Mapping[str, str]) -> AsyncIterator[InputSeen]:
    """Yields when the desktop stops being idle, and repeatedly while it is in use."""
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
    """A connection on which the compositor reports when the seat becomes idle and active again."""

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
        # Object ids must be allocated in the order in which the compositor receives them.
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


_REMEDY = "Use an X11 session, or a compositor of the wlroots family such as sway."
_NEEDS: dict[FacetName, str] = {
    "screen": "zwlr_screencopy_manager_v1",
    "pointer": "zwlr_virtual_pointer_manager_v1",
    "keyboard": "zwp_virtual_keyboard_manager_v1",
    "clipboard": "zwlr_data_control_manager_v1",
}
_HANDS: tuple[FacetName, ...] = ("pointer", "keyboard")
_MUTTER_ONLY = "gtk_shell1"
"""A global that only mutter offers."""


def provide_wayland(computer: Computer, environ: Mapping[str, str]) -> None:
    """Query the compositor's globals, and provide the facets they allow."""
    try:
        offered = _offered(environ)
    except LinkError as error:
        for facet in (*_NEEDS, "windows", "apps"):
            computer.provide(facet, Absent(facet, error.message, "", ProviderUnavailable), backend="")
        return
    connection = Connection(environ)
    windows = SwayWindows(environ) if environ.get("SWAYSOCK") else None
    _provide_screen_and_input(computer, connection, offered, windows)
    if windows is None:
        reason = "This compositor does not tell programs about windows."
        for facet in ("windows", "apps"):
            computer.provide(facet, Absent(facet, reason, _REMEDY), backend="")
    else:
        computer.provide("windows", windows, backend="sway")
        computer.provide("apps", LinuxApps(windows, environ, lambda: computer.scopes()), backend="desktop entries")
    can_watch = STANDARD in offered or OLDER in offered
    watch = (lambda: activity_seen(environ)) if can_watch else None
    computer.provide("facts", LinuxFacts("wayland", environ, watch), backend="linux")
    computer.provide("notifications", BusNotifications(environ), backend="session bus")
    computer.on_close(connection.aclose)


def _provide_screen_and_input(
    computer: Computer, connection: Connection, offered: set[str], windows: SwayWindows | None
) -> None:
    parts: dict[str, Callable[[], object]] = {
        "screen": lambda: WaylandScreen(connection, windows),
        "pointer": lambda: WaylandPointer(connection),
        "keyboard": lambda: WaylandKeyboard(connection),
        "clipboard": lambda: WaylandClipboard(connection.environ),
    }
    for facet, protocol in _NEEDS.items():
        if protocol in offered:
            computer.provide(facet, parts[facet](), backend="wlroots")
        elif facet in _HANDS:
            continue
        elif facet == "screen" and connection.environ.get("DBUS_SESSION_BUS_ADDRESS"):
            # GNOME and KDE allow capture only through the portal, which asks the person.
            computer.provide(facet, PortalScreen(connection), backend="portal", is_proven=False)
        else:
            reason = f"This compositor does not offer {protocol}."
            computer.provide(facet, Absent(facet, reason, _REMEDY, UnsupportedPlatform), backend="")
    if lacking := [facet for facet in _HANDS if _NEEDS[facet] not in offered]:
        _provide_remote_input(computer, connection, lacking, is_mutter=_MUTTER_ONLY in offered)


def _provide_remote_input(
    computer: Computer, connection: Connection, facets: list[FacetName], *, is_mutter: bool
) -> None:
    """Provide pointer and keyboard by a remote control session, for GNOME and KDE."""
    from computer_linker.computer.local.linux.wayland.portal.input import RemoteKeyboard, RemotePointer
    from computer_linker.computer.local.linux.wayland.portal.probe import find_remote_control
    from computer_linker.computer.local.linux.wayland.portal.session import RemoteSession

    found = find_remote_control(connection.environ, is_mutter=is_mutter)
    if found.opener is None:
        for facet in facets:
            computer.provide(facet, Absent(facet, found.reason, found.remedy, UnsupportedPlatform), backend="")
        return
    session = RemoteSession(connection, found.opener)
    backend = "portal" if found.is_asking else "mutter"
    is_proven = is_mutter or not found.is_asking
    for facet in facets:
        part = RemotePointer(session) if facet == "pointer" else RemoteKeyboard(session)
        computer.provide(facet, part, backend=backend, is_proven=is_proven)
    computer.on_close(session.aclose)


def _offered(environ: Mapping[str, str]) -> set[str]:
    wire = Wire(environ)
    try:
        return set(wire.globals)
    finally:
        wire.close()
