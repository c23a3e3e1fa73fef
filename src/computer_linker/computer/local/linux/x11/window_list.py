"""Describes X11 windows. All requests are sent before the first reply is awaited: one round trip for all."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from computer_linker.errors import InvalidRequest
from computer_linker.model.geometry import Rect, Window, WindowState, safe_title
from computer_linker.system.linux import process_name

if TYPE_CHECKING:
    from Xlib.display import Display

# Reads window properties of an X server, bounded: any client may write anything there.

_MAX_LONGS = 65_536


class Properties:
    """Reads properties of one display. Atoms are cached by the connection."""

    def __init__(self, display: "Display") -> None:
        self.display = display

    def atom(self, name: str) -> int:
        """The atom of a name."""
        return self.display.intern_atom(name)

    def window(self, window_id: str) -> Any:
        """The window of an id such as `0x1e00003`. Raises InvalidRequest for an invalid id."""
        try:
            number = int(window_id, 16) if window_id.startswith("0x") else -1
        except ValueError:
            number = -1
        if not 0 < number <= 0x1FFFFFFF:
            raise InvalidRequest("A window id looks like 0x1e00003; window.list gives them.")
        return self.display.create_resource_object("window", number)

    def ask(self, window_id: int, name: str, longs: int = _MAX_LONGS) -> Any:
        """Request a property without waiting; `reply()` on the result waits."""
        from Xlib import X
        from Xlib.protocol import request

        return request.GetProperty(
            display=self.display.display, defer=True, delete=False, window=window_id, property=self.atom(name),
            type=X.AnyPropertyType, long_offset=0, long_length=longs,
        )  # fmt: skip

    def numbers(self, window: Any, name: str) -> list[int]:
        """A list of 32-bit numbers or atoms; empty when there is none."""
        return numbers_in(self._read(window, name))

    def number(self, window: Any, name: str) -> int | None:
        """The first number of a property."""
        found = self.numbers(window, name)
        return found[0] if found else None

    def text(self, window: Any, name: str) -> str:
        """A text property; empty when there is none."""
        return text_in(self._read(window, name))

    def _read(self, window: Any, name: str) -> Any:
        pending = self.ask(window.id, name)
        pending.reply()
        return pending


def numbers_in(answer: Any) -> list[int]:
    """The numbers of a property that was read."""
    return [int(value) for value in answer.value[1]] if _is(answer, 32) else []


def text_in(answer: Any) -> str:
    """The text of a property that was read; any client may have written anything there."""
    return bytes(answer.value[1]).decode("utf-8", errors="replace") if _is(answer, 8) else ""


def _is(answer: Any, form: int) -> bool:
    return bool(answer.property_type) and answer.value is not None and answer.value[0] == form


_MAX_WINDOWS = 500
_TITLE_LONGS = 256
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
    """The managed windows from bottom to top; without a window manager the mapped children of the root."""
    properties, root = Properties(display), display.screen().root
    found = properties.numbers(root, "_NET_CLIENT_LIST_STACKING") or properties.numbers(root, "_NET_CLIENT_LIST")
    if not found and properties.number(root, "_NET_SUPPORTING_WM_CHECK") is None:
        found = _mapped(display, popup=False)
    return found[-_MAX_WINDOWS:]


def listed(display: "Display") -> list[Window]:
    """The managed windows, topmost first, without splash windows: those are no documents and close by themselves."""
    return _described(display, reversed(managed_ids(display)), with_splash=False)


def stacked(display: "Display") -> list[Window]:
    """Pop-ups, which lie above, then the managed windows."""
    popups = _mapped(display, popup=True)
    found = _described(display, [*reversed(popups), *reversed(managed_ids(display))])
    unmanaged = {hex(number) for number in popups}
    return [one for one in found if one.id not in unmanaged or (one.bounds.width > 1 and one.bounds.height > 1)]


def describe(display: "Display", window_id: int) -> Window | None:
    """Describe one window; None when it was closed meanwhile."""
    found = _described(display, [window_id])
    return found[0] if found else None


def _described(display: "Display", window_ids: Iterable[int], *, with_splash: bool = True) -> list[Window]:
    properties, root = Properties(display), display.screen().root
    active = properties.ask(root.id, "_NET_ACTIVE_WINDOW")
    workspace = properties.ask(root.id, "_NET_CURRENT_DESKTOP")
    pending = [_PendingWindow(display, properties, window_id) for window_id in window_ids]
    focused, current = _first(active), _first(workspace)
    found = ((each, each.answer(focused, current)) for each in pending)
    return [window for each, window in found if window is not None and (with_splash or not each.is_splash)]


class _PendingWindow:
    """The pending requests about one window."""

    def __init__(self, display: "Display", properties: Properties, window_id: int) -> None:
        from Xlib.protocol import request

        core, root = display.display, display.screen().root.id
        self._id = window_id
        self._geometry = request.GetGeometry(display=core, defer=True, drawable=window_id)
        self._origin = request.TranslateCoords(
            display=core, defer=True, src_wid=window_id, dst_wid=root, src_x=0, src_y=0
        )
        self._properties = {
            name: properties.ask(window_id, name, longs)
            for name, longs in (
                ("_NET_WM_NAME", _TITLE_LONGS), ("WM_NAME", _TITLE_LONGS), ("WM_CLASS", _TITLE_LONGS),
                ("_NET_WM_STATE", 64), ("_NET_WM_DESKTOP", 1), ("_NET_WM_PID", 1),
                ("_NET_FRAME_EXTENTS", 4), ("_GTK_FRAME_EXTENTS", 4), ("_NET_WM_WINDOW_TYPE", 4),
            )
        }  # fmt: skip
        self._client = _ask_client(display, window_id)
        self._states = {properties.atom(name): state for name, state in _STATES.items()}
        self._splash = properties.atom("_NET_WM_WINDOW_TYPE_SPLASH")

    @property
    def is_splash(self) -> bool:
        """Whether it is a picture that an application shows while it starts; known once it answered."""
        return self._splash in self._numbers("_NET_WM_WINDOW_TYPE")

    def answer(self, focused: int | None, workspace: int | None) -> Window | None:
        """The window, or None when it was closed meanwhile."""
        from Xlib.error import BadDrawable, BadWindow

        try:
            self._geometry.reply()
            self._origin.reply()
            for each in self._properties.values():
                each.reply()
        except (BadWindow, BadDrawable):
            return None
        return self._window(focused, workspace)

    def _window(self, focused: int | None, workspace: int | None) -> Window:
        bounds = Rect(x=self._origin.x, y=self._origin.y, width=self._geometry.width, height=self._geometry.height)
        states = sorted({self._states[atom] for atom in self._numbers("_NET_WM_STATE") if atom in self._states})
        mine, pid = _first(self._properties["_NET_WM_DESKTOP"]), self._pid()
        return Window(
            id=hex(self._id),
            title=safe_title(self._text("_NET_WM_NAME") or self._text("WM_NAME")),
            app=safe_title(self._class()),
            pid=pid,
            process=process_name(pid),
            bounds=bounds,
            frame=self._frame(bounds),
            is_focused=self._id == focused,
            is_visible="minimized" not in states and mine in (None, _EVERY_WORKSPACE, workspace),
            states=states,
        )

    def _class(self) -> str:
        parts = self._text("WM_CLASS").split("\0")
        return parts[1] if len(parts) > 1 and parts[1] else parts[0]

    def _frame(self, bounds: Rect) -> Rect:
        drawn_by_client = self._numbers("_GTK_FRAME_EXTENTS")
        if len(drawn_by_client) == 4:
            left, right, top, bottom = (-value for value in drawn_by_client)
        else:
            left, right, top, bottom = [*self._numbers("_NET_FRAME_EXTENTS"), 0, 0, 0, 0][:4]
        if max(abs(value) for value in (left, right, top, bottom)) > 1000:
            return bounds
        return Rect(
            x=bounds.x - left, y=bounds.y - top,
            width=max(0, bounds.width + left + right), height=max(0, bounds.height + top + bottom),
        )  # fmt: skip

    def _pid(self) -> int | None:
        """The process id as reported by the server (XRes) where possible, not as claimed by the window."""
        from Xlib.error import XError

        if self._client is not None:
            try:
                self._client.reply()
            except XError:
                return None
            known = [int(each.value[0]) for each in self._client.ids if each.value]
            if known and known[0] > 0:
                return known[0]
        claimed = _first(self._properties["_NET_WM_PID"])
        return claimed if claimed and claimed <= 0x7FFFFFFF else None

    def _numbers(self, name: str) -> list[int]:
        return numbers_in(self._properties[name])

    def _text(self, name: str) -> str:
        return text_in(self._properties[name])


def _ask_client(display: "Display", window_id: int) -> Any:
    if not display.has_extension("X-Resource"):
        return None
    from Xlib.ext import res

    return res.QueryClientIds(
        display=display.display, defer=True, opcode=display.display.get_extension_major(res.extname),
        specs=[{"client": window_id, "mask": _CLIENT_PID_MASK}],
    )  # fmt: skip


def _mapped(display: "Display", *, popup: bool) -> list[int]:
    """The mapped children of the root that are override-redirect, or (without a window manager) all others."""
    from Xlib import X
    from Xlib.error import BadDrawable, BadWindow
    from Xlib.protocol import request

    children = [child.id for child in display.screen().root.query_tree().children]
    pending = [request.GetWindowAttributes(display=display.display, defer=True, window=child) for child in children]
    found: list[int] = []
    for child, attributes in zip(children, pending, strict=True):
        try:
            attributes.reply()
        except (BadWindow, BadDrawable):
            continue
        shown = attributes.map_state == X.IsViewable and attributes.win_class == X.InputOutput
        if shown and bool(attributes.override_redirect) is popup:
            found.append(child)
    return found


def _first(pending: Any) -> int | None:
    pending.reply()
    found = numbers_in(pending)
    return found[0] if found else None
