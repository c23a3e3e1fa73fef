"""The Windows functions that the facets use, with their types; loaded on first use, on Windows only."""

import ctypes
from ctypes import wintypes
from functools import cache
from typing import Any

LONG_PTR = ctypes.c_ssize_t
ENUM_WINDOWS = "EnumWindows"


class KeyInput(ctypes.Structure):
    _fields_ = [
        ("virtual_key", wintypes.WORD),
        ("scan", wintypes.WORD),
        ("flags", wintypes.DWORD),
        ("time", wintypes.DWORD),
        ("extra", ctypes.c_void_p),
    ]


class MouseInput(ctypes.Structure):
    _fields_ = [
        ("dx", wintypes.LONG),
        ("dy", wintypes.LONG),
        ("data", wintypes.DWORD),
        ("flags", wintypes.DWORD),
        ("time", wintypes.DWORD),
        ("extra", ctypes.c_void_p),
    ]


class _InputUnion(ctypes.Union):
    _fields_ = [("key", KeyInput), ("mouse", MouseInput)]


class Input(ctypes.Structure):
    _fields_ = [("kind", wintypes.DWORD), ("value", _InputUnion)]


class BitmapHeader(ctypes.Structure):
    _fields_ = [
        ("size", wintypes.DWORD), ("width", wintypes.LONG), ("height", wintypes.LONG), ("planes", wintypes.WORD),
        ("bits", wintypes.WORD), ("compression", wintypes.DWORD), ("image_size", wintypes.DWORD),
        ("x_per_metre", wintypes.LONG), ("y_per_metre", wintypes.LONG), ("used", wintypes.DWORD),
        ("important", wintypes.DWORD),
    ]  # fmt: skip


class MonitorInfo(ctypes.Structure):
    _fields_ = [
        ("size", wintypes.DWORD),
        ("monitor", wintypes.RECT),
        ("work", wintypes.RECT),
        ("flags", wintypes.DWORD),
        ("device", wintypes.WCHAR * 32),
    ]


@cache
def user32() -> Any:
    """user32 with handles as pointers: ctypes would cut them to 32 bits otherwise."""
    library = _load("user32")
    # Coordinates in real pixels, whatever the displays' scales; before any window function is used.
    library.SetProcessDpiAwarenessContext.argtypes = [ctypes.c_void_p]
    library.SetProcessDpiAwarenessContext(ctypes.c_void_p(-4))
    handles = {
        "GetForegroundWindow": [], "GetDC": [wintypes.HWND], "GetWindowDC": [wintypes.HWND],
        "GetClipboardData": [wintypes.UINT], "SetClipboardData": [wintypes.UINT, wintypes.HANDLE],
        "GetAncestor": [wintypes.HWND, wintypes.UINT],
    }  # fmt: skip
    for name, arguments in handles.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, wintypes.HANDLE
    library.ReleaseDC.argtypes = [wintypes.HWND, wintypes.HDC]
    library.OpenClipboard.argtypes = [wintypes.HWND]
    library.SendInput.argtypes = [wintypes.UINT, ctypes.c_void_p, ctypes.c_int]
    library.PostMessageW.argtypes = [wintypes.HWND, wintypes.UINT, wintypes.WPARAM, wintypes.LPARAM]
    for name in ("IsWindow", "IsWindowVisible", "IsIconic", "IsZoomed", "SetForegroundWindow", "BringWindowToTop"):
        getattr(library, name).argtypes = [wintypes.HWND]
    library.ShowWindow.argtypes = [wintypes.HWND, ctypes.c_int]
    library.GetWindowTextW.argtypes = [wintypes.HWND, wintypes.LPWSTR, ctypes.c_int]
    library.GetClassNameW.argtypes = [wintypes.HWND, wintypes.LPWSTR, ctypes.c_int]
    library.GetWindowRect.argtypes = library.GetClientRect.argtypes = [wintypes.HWND, ctypes.c_void_p]
    library.ClientToScreen.argtypes = [wintypes.HWND, ctypes.c_void_p]
    library.GetWindowThreadProcessId.argtypes = [wintypes.HWND, ctypes.c_void_p]
    library.GetWindowLongW.argtypes = [wintypes.HWND, ctypes.c_int]
    library.MoveWindow.argtypes = [wintypes.HWND, *[ctypes.c_int] * 4, wintypes.BOOL]
    library.PrintWindow.argtypes = [wintypes.HWND, wintypes.HDC, wintypes.UINT]
    return library


@cache
def gdi32() -> Any:
    """gdi32 with handles as pointers."""
    library = _load("gdi32")
    for name, arguments in (
        ("CreateCompatibleDC", [wintypes.HDC]),
        ("CreateCompatibleBitmap", [wintypes.HDC, ctypes.c_int, ctypes.c_int]),
        ("SelectObject", [wintypes.HDC, wintypes.HANDLE]),
    ):
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, wintypes.HANDLE
    library.BitBlt.argtypes = [
        wintypes.HDC,
        *[ctypes.c_int] * 4,
        wintypes.HDC,
        ctypes.c_int,
        ctypes.c_int,
        wintypes.DWORD,
    ]
    library.GetDIBits.argtypes = [
        wintypes.HDC, wintypes.HANDLE, wintypes.UINT, wintypes.UINT, ctypes.c_void_p, ctypes.c_void_p, wintypes.UINT,
    ]  # fmt: skip
    library.DeleteDC.argtypes = [wintypes.HDC]
    library.DeleteObject.argtypes = [wintypes.HANDLE]
    return library


@cache
def kernel32() -> Any:
    """kernel32 with handles and memory as pointers."""
    library = _load("kernel32")
    for name, arguments in (
        ("GlobalAlloc", [wintypes.UINT, ctypes.c_size_t]),
        ("GlobalLock", [wintypes.HANDLE]),
        ("OpenProcess", [wintypes.DWORD, wintypes.BOOL, wintypes.DWORD]),
    ):
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, ctypes.c_void_p
    library.GlobalUnlock.argtypes = library.GlobalFree.argtypes = library.CloseHandle.argtypes = [wintypes.HANDLE]
    library.GlobalSize.argtypes, library.GlobalSize.restype = [wintypes.HANDLE], ctypes.c_size_t
    library.QueryFullProcessImageNameW.argtypes = [
        wintypes.HANDLE, wintypes.DWORD, wintypes.LPWSTR, ctypes.c_void_p,
    ]  # fmt: skip
    return library


def callback(*arguments: Any) -> Any:
    """The type of a callback function."""
    maker: Any = getattr(ctypes, "WINFUNCTYPE")  # noqa: B009  # exists on Windows alone
    return maker(*arguments)


def _load(name: str) -> Any:
    loader: Any = getattr(ctypes, "WinDLL")  # noqa: B009  # exists on Windows alone
    return loader(name, use_last_error=True)
