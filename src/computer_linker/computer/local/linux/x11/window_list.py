"""What is known of each X11 window, read in as few round trips as it takes."""

from typing import TYPE_CHECKING, Any

from computer_linker.computer.local.linux.proc import process_name
from computer_linker.computer.local.linux.x11.properties import Properties
from computer_linker.computer.titles import shown_title
from computer_linker.model.geometry import Rect, Window, WindowState

if TYPE_CHECKING:
    from Xlib.display import Display

_MAX_WINDOWS = 500
_EVERY_WORKSPACE = 0xFFFFFFFF
_CLIENT_PID_MASK = 2
_STATES: dict[str, WindowState] = {
    "_NET_WM_STATE_HIDDEN": "minimized",
    "_NET_WM_STATE_FULLSCREEN": "fullscreen",
    "_NET_WM_STATE_MODAL": "modal",
    "_NET_WM_STATE_ABOVE": "above",
    "_NET_WM_STATE_MAXIMIZED_VERT": "maximized",
}


def managed_ids(display: "Display") -> list[int]:
    """The windows of the window manager from bottom to top; the mapped children of the root without one."""
    properties, root = Properties(display), display.screen().root
    found = properties.numbers(root, "_NET_CLIENT_LIST_STACKING") or properties.numbers(root, "_NET_CLIENT_LIST")
    if not found and properties.number(root, "_NET_SUPPORTING_WM_CHECK") is None:
        found = [child.id for child in root.query_tree().children if _mapped(child, popup=False)]
    return found[-_MAX_WINDOWS:]


def listed(display: "Display") -> list[Window]:
    """The windows of the window manager, topmost first."""
    active = Properties(display).number(display.screen().root, "_NET_ACTIVE_WINDOW")
    found = (
        describe(display, display.create_resource_object("window", number), active)
        for number in reversed(managed_ids(display))
    )
    return [window for window in found if window is not None]


def stacked(display: "Display") -> list[Window]:
    """Popups first, for they lie above, then the managed windows."""
    popups = [
        window
        for child in reversed(display.screen().root.query_tree().children)
        if _mapped(child, popup=True) and (window := _popup(display, child)) is not None
    ]
    return popups + listed(display)


def describe(display: "Display", window: Any, active: int | None) -> Window | None:
    """One window; None when it went away meanwhile."""
    from Xlib.error import BadDrawable, BadWindow

    properties = Properties(display)
    try:
        states = _states(properties, window)
        bounds = _bounds(display, window)
        pid = _pid(display, properties, window)
        return Window(
            id=hex(window.id),
            title=shown_title(properties.title(window)),
            app=shown_title(properties.app(window)),
            pid=pid,
            process=process_name(pid),
            bounds=bounds,
            frame=_frame(properties, window, bounds),
            is_focused=window.id == active,
            is_visible="minimized" not in states and _on_this_workspace(display, properties, window),
            states=states,
        )
    except (BadWindow, BadDrawable):
        return None


def _popup(display: "Display", child: Any) -> Window | None:
    from Xlib.error import BadDrawable, BadWindow

    try:
        bounds, properties = _bounds(display, child), Properties(display)
        if bounds.width <= 1 and bounds.height <= 1:
            return None
        pid = _pid(display, properties, child)
        return Window(
            id=hex(child.id), title=shown_title(properties.title(child)), app=shown_title(properties.app(child)),
            pid=pid, process=process_name(pid), bounds=bounds, frame=bounds, is_focused=False, is_visible=True,
        )  # fmt: skip
    except (BadWindow, BadDrawable):
        return None


def _mapped(child: Any, *, popup: bool) -> bool:
    from Xlib import X
    from Xlib.error import BadDrawable, BadWindow

    try:
        attributes = child.get_attributes()
    except (BadWindow, BadDrawable):
        return False
    return (
        attributes.map_state == X.IsViewable
        and attributes.win_class == X.InputOutput
        and bool(attributes.override_redirect) is popup
    )


def _bounds(display: "Display", window: Any) -> Rect:
    geometry, origin = window.get_geometry(), window.translate_coords(display.screen().root, 0, 0)
    return Rect(x=-origin.x, y=-origin.y, width=geometry.width, height=geometry.height)


def _frame(properties: Properties, window: Any, bounds: Rect) -> Rect:
    drawn_by_client = properties.numbers(window, "_GTK_FRAME_EXTENTS")
    if len(drawn_by_client) == 4:
        left, right, top, bottom = (-value for value in drawn_by_client)
    else:
        left, right, top, bottom = [*properties.numbers(window, "_NET_FRAME_EXTENTS"), 0, 0, 0, 0][:4]
    if max(abs(value) for value in (left, right, top, bottom)) > 1000:
        return bounds
    return Rect(
        x=bounds.x - left, y=bounds.y - top,
        width=max(0, bounds.width + left + right), height=max(0, bounds.height + top + bottom),
    )  # fmt: skip


def _states(properties: Properties, window: Any) -> list[WindowState]:
    names = properties.atom_names(window, "_NET_WM_STATE")
    return sorted({_STATES[name] for name in names if name in _STATES})


def _on_this_workspace(display: "Display", properties: Properties, window: Any) -> bool:
    mine = properties.number(window, "_NET_WM_DESKTOP")
    if mine is None or mine == _EVERY_WORKSPACE:
        return True
    return mine == properties.number(display.screen().root, "_NET_CURRENT_DESKTOP")


def _pid(display: "Display", properties: Properties, window: Any) -> int | None:
    """The process the server knows, not the one the window claims, where the server can tell."""
    if display.has_extension("X-Resource"):
        reply = display.res_query_client_ids([{"client": window.id, "mask": _CLIENT_PID_MASK}])
        known = [int(each.value[0]) for each in reply.ids if each.value]
        if known and known[0] > 0:
            return known[0]
    claimed = properties.number(window, "_NET_WM_PID")
    return claimed if claimed and claimed <= 0x7FFFFFFF else None
