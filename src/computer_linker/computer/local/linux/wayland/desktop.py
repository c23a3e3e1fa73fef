"""The Wayland facets of a computer: what this compositor offers, and why the rest is missing."""

from collections.abc import Callable, Mapping

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.absent import Absent
from computer_linker.computer.local.linux.apps import LinuxApps
from computer_linker.computer.local.linux.facts import LinuxFacts
from computer_linker.computer.local.linux.notifications import BusNotifications
from computer_linker.computer.local.linux.wayland.clipboard import WaylandClipboard
from computer_linker.computer.local.linux.wayland.connection import Connection
from computer_linker.computer.local.linux.wayland.idle_watch import OLDER, STANDARD, activity_seen
from computer_linker.computer.local.linux.wayland.keyboard import WaylandKeyboard
from computer_linker.computer.local.linux.wayland.pointer import WaylandPointer
from computer_linker.computer.local.linux.wayland.portal_screen import PortalScreen
from computer_linker.computer.local.linux.wayland.screen import WaylandScreen
from computer_linker.computer.local.linux.wayland.sway_windows import SwayWindows
from computer_linker.computer.local.linux.wayland.wire import Wire
from computer_linker.computer.manifest import FacetName
from computer_linker.errors import LinkError, ProviderUnavailable, UnsupportedPlatform

_REMEDY = "Use an X11 session, or a compositor of the wlroots family such as sway."
_NEEDS: dict[FacetName, str] = {
    "screen": "zwlr_screencopy_manager_v1",
    "pointer": "zwlr_virtual_pointer_manager_v1",
    "keyboard": "zwp_virtual_keyboard_manager_v1",
    "clipboard": "zwlr_data_control_manager_v1",
}
_HANDS: tuple[FacetName, ...] = ("pointer", "keyboard")
_MUTTER_ONLY = "gtk_shell1"
"""What no other compositor offers."""


def provide_wayland(computer: Computer, environ: Mapping[str, str]) -> None:
    """Ask the compositor what it offers, and put those facets in place."""
    try:
        offered = _offered(environ)
    except LinkError as error:
        for facet in (*_NEEDS, "windows", "apps"):
            computer.provide(facet, Absent(facet, error.message, "", ProviderUnavailable), backend="")
        return
    connection = Connection(environ)
    windows = SwayWindows(environ) if environ.get("SWAYSOCK") else None
    _provide_eyes_and_hands(computer, connection, offered, windows)
    if windows is None:
        reason = "This compositor does not tell programs about windows."
        for facet in ("windows", "apps"):
            computer.provide(facet, Absent(facet, reason, _REMEDY), backend="")
    else:
        computer.provide("windows", windows, backend="sway")
        computer.provide("apps", LinuxApps(windows, environ), backend="desktop entries")
    can_watch = STANDARD in offered or OLDER in offered
    watch = (lambda: activity_seen(environ)) if can_watch else None
    computer.provide("facts", LinuxFacts("wayland", environ, watch), backend="linux")
    computer.provide("notifications", BusNotifications(environ), backend="session bus")
    computer.on_close(connection.aclose)


def _provide_eyes_and_hands(
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
            # GNOME and KDE show pixels only through the portal, which asks the person.
            computer.provide(facet, PortalScreen(connection), backend="portal", is_proven=False)
        else:
            reason = f"This compositor does not offer {protocol}."
            computer.provide(facet, Absent(facet, reason, _REMEDY, UnsupportedPlatform), backend="")
    if lacking := [facet for facet in _HANDS if _NEEDS[facet] not in offered]:
        _provide_remote_hands(computer, connection, lacking, is_mutter=_MUTTER_ONLY in offered)


def _provide_remote_hands(
    computer: Computer, connection: Connection, facets: list[FacetName], *, is_mutter: bool
) -> None:
    """GNOME and KDE: pointer and keyboard by a remote control session."""
    from computer_linker.computer.local.linux.wayland.portal_hands import RemoteKeyboard, RemotePointer
    from computer_linker.computer.local.linux.wayland.portal_probe import find_road
    from computer_linker.computer.local.linux.wayland.portal_session import RemoteSession

    found = find_road(connection.environ, is_mutter=is_mutter)
    if found.road is None:
        for facet in facets:
            computer.provide(facet, Absent(facet, found.reason, found.remedy, UnsupportedPlatform), backend="")
        return
    session = RemoteSession(connection, found.road)
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
