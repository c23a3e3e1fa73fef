"""Windows on Windows."""

import ctypes
import time
from collections.abc import Callable
from ctypes import wintypes
from pathlib import PureWindowsPath
from typing import Any

from computer_linker.computer.local.threaded_windows import Calls, ThreadedWindows
from computer_linker.computer.local.windows.api import callback, kernel32, user32
from computer_linker.errors import ExecutionFailed, InvalidRequest, NotFound
from computer_linker.model.geometry import Rect, Window, WindowState, safe_title

_TOOL_WINDOW, _EXTENDED_STYLE = 0x80, -20
_CLOSE, _RESTORE = 0x10, 9
_WAIT_S, _LOOK_S = 2.0, 0.02
_ALT = 0x12
_KEY_UP = 2


class Win32Windows(ThreadedWindows):
    """Top-level windows; those visible in the task bar are listed."""

    def __init__(self) -> None:
        super().__init__(Calls(_listed, _focus, _place, _close))


def handle_of(window_id: str) -> int:
    """The window of an id such as `0x20076`."""
    try:
        handle = int(window_id, 16) if window_id.startswith("0x") else 0
    except ValueError:
        handle = 0
    if not 0 < handle < 1 << 63:
        raise InvalidRequest("A window id looks like 0x20076; window.list gives them.")
    if not user32().IsWindow(handle):
        raise NotFound("There is no such window.", windowId=window_id)
    return handle


def window_bounds(handle: int) -> Rect:
    """The content of a window in desktop coordinates."""
    inside, corner = wintypes.RECT(), wintypes.POINT(0, 0)
    user32().GetClientRect(handle, ctypes.byref(inside))
    user32().ClientToScreen(handle, ctypes.byref(corner))
    return Rect(x=corner.x, y=corner.y, width=max(0, inside.right), height=max(0, inside.bottom))


def _listed(with_popups: bool = False) -> list[Window]:
    found: list[Window] = []
    kind = callback(wintypes.BOOL, wintypes.HWND, wintypes.LPARAM)
    focused = user32().GetForegroundWindow()

    def each(handle: Any, _data: Any) -> bool:
        if user32().IsWindowVisible(handle) and (with_popups or _is_listed(handle)):
            found.append(_described(int(handle), focused))
        return True

    user32().EnumWindows(kind(each), 0)
    return [window for window in found if not window.frame.is_empty]


def _is_listed(handle: Any) -> bool:
    return not user32().GetWindowLongW(handle, _EXTENDED_STYLE) & _TOOL_WINDOW and bool(_text(handle, "GetWindowTextW"))


def _described(handle: int, focused: int | None) -> Window:
    outside, pid = wintypes.RECT(), wintypes.DWORD()
    user32().GetWindowRect(handle, ctypes.byref(outside))
    user32().GetWindowThreadProcessId(handle, ctypes.byref(pid))
    states: list[WindowState] = []
    if user32().IsIconic(handle):
        states.append("minimized")
    if user32().IsZoomed(handle):
        states.append("maximized")
    return Window(
        id=hex(handle),
        title=safe_title(_text(handle, "GetWindowTextW")),
        app=safe_title(_text(handle, "GetClassNameW")),
        pid=pid.value or None,
        process=_process(pid.value),
        bounds=window_bounds(handle),
        frame=Rect(
            x=outside.left,
            y=outside.top,
            width=max(0, outside.right - outside.left),
            height=max(0, outside.bottom - outside.top),
        ),
        is_focused=handle == focused,
        is_visible="minimized" not in states,
        states=states,
    )


def _text(handle: Any, function: str) -> str:
    buffer = ctypes.create_unicode_buffer(512)
    getattr(user32(), function)(handle, buffer, 512)
    return buffer.value


def _process(pid: int) -> str:
    handle = kernel32().OpenProcess(0x1000, 0, pid)
    if not handle:
        return ""
    try:
        buffer, size = ctypes.create_unicode_buffer(1024), wintypes.DWORD(1024)
        if not kernel32().QueryFullProcessImageNameW(handle, 0, buffer, ctypes.byref(size)):
            return ""
        return safe_title(PureWindowsPath(buffer.value).name)
    finally:
        kernel32().CloseHandle(handle)


def _focus(window_id: str) -> Window:
    handle = handle_of(window_id)
    if user32().IsIconic(handle):
        user32().ShowWindow(handle, _RESTORE)
    if user32().GetForegroundWindow() != handle and not user32().SetForegroundWindow(handle):
        # Windows lets only the process with the last input change the foreground; a press of Alt counts.
        user32().keybd_event(_ALT, 0, 0, 0)
        user32().keybd_event(_ALT, 0, _KEY_UP, 0)
        user32().SetForegroundWindow(handle)
    if not _until(lambda: user32().GetForegroundWindow() == handle):
        raise ExecutionFailed("Windows did not give the window the focus.", windowId=window_id)
    return _described(handle, handle)


def _place(window_id: str, bounds: Rect) -> Window:
    handle = handle_of(window_id)
    now = _described(handle, None)
    left, top = now.bounds.x - now.frame.x, now.bounds.y - now.frame.y
    width, height = now.frame.width - now.bounds.width, now.frame.height - now.bounds.height
    user32().MoveWindow(handle, bounds.x - left, bounds.y - top, bounds.width + width, bounds.height + height, 1)
    _until(lambda: window_bounds(handle) == bounds, seconds=0.5)
    return _described(handle, user32().GetForegroundWindow())


def _close(window_id: str) -> bool:
    handle = handle_of(window_id)
    user32().PostMessageW(handle, _CLOSE, 0, 0)
    return _until(lambda: not user32().IsWindow(handle))


def _until(done: Callable[[], bool], seconds: float = _WAIT_S) -> bool:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_S)
    return True
