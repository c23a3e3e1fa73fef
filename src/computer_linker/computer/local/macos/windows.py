"""Windows on macOS: listed by Quartz, moved and raised through the accessibility interface."""

from typing import Any

from computer_linker.computer.local.threaded_windows import Calls, ThreadedWindows
from computer_linker.errors import ExecutionFailed, InvalidRequest, NotFound, OsPermissionRequired
from computer_linker.model.geometry import Rect, Window, safe_title


class MacWindows(ThreadedWindows):
    """The windows on screen."""

    def __init__(self) -> None:
        super().__init__(Calls(_listed, _focus, _place, _close))


def window_number(window_id: str) -> int:
    """The window of an id. Raises NotFound when it is not on screen."""
    if not window_id.isascii() or not window_id.isdigit():
        raise InvalidRequest("A window id is a number; window.list gives them.")
    _found(window_id)
    return int(window_id)


def window_place(number: int) -> Rect:
    """The bounds of a window."""
    return _found(str(number)).bounds


def _listed(with_popups: bool = False) -> list[Window]:
    import AppKit
    import Quartz

    options = Quartz.kCGWindowListOptionOnScreenOnly | Quartz.kCGWindowListExcludeDesktopElements
    front = AppKit.NSWorkspace.sharedWorkspace().frontmostApplication()
    front_pid = None if front is None else int(front.processIdentifier())
    found: list[Window] = []
    for info in Quartz.CGWindowListCopyWindowInfo(options, Quartz.kCGNullWindowID) or []:
        if with_popups or info.get("kCGWindowLayer", 0) == 0:
            found.append(_described(info, front_pid, is_first=not any(one.is_focused for one in found)))
    return found


def _described(info: Any, front_pid: int | None, *, is_first: bool) -> Window:
    place, pid = info["kCGWindowBounds"], int(info["kCGWindowOwnerPID"])
    bounds = Rect(x=int(place["X"]), y=int(place["Y"]), width=int(place["Width"]), height=int(place["Height"]))
    owner = safe_title(str(info.get("kCGWindowOwnerName", "")))
    return Window(
        id=str(int(info["kCGWindowNumber"])), title=safe_title(str(info.get("kCGWindowName", "") or "")), app=owner,
        pid=pid, process=owner, bounds=bounds, frame=bounds, is_focused=is_first and pid == front_pid, is_visible=True,
    )  # fmt: skip


def _found(window_id: str) -> Window:
    for window in _listed(with_popups=True):
        if window.id == window_id:
            return window
    raise NotFound("There is no such window.", windowId=window_id[:64])


def _element(window: Window) -> Any:
    """The accessibility element of a window: the one of its process with the same bounds."""
    import ApplicationServices as Services

    need_accessibility()
    application = Services.AXUIElementCreateApplication(window.pid)
    error, elements = Services.AXUIElementCopyAttributeValue(application, "AXWindows", None)
    for element in elements or [] if error == 0 else []:
        if _place_of(Services, element) == (window.bounds.x, window.bounds.y):
            return element
    raise NotFound("The application does not offer this window to be controlled.", windowId=window.id)


def _place_of(services: Any, element: Any) -> tuple[int, int] | None:
    error, value = services.AXUIElementCopyAttributeValue(element, "AXPosition", None)
    if error != 0:
        return None
    _, point = services.AXValueGetValue(value, services.kAXValueCGPointType, None)
    return int(point.x), int(point.y)


def _focus(window_id: str) -> Window:
    import AppKit
    import ApplicationServices as Services

    window = _found(window_id)
    element = _element(window)
    application = AppKit.NSRunningApplication.runningApplicationWithProcessIdentifier_(window.pid)
    application.activateWithOptions_(AppKit.NSApplicationActivateIgnoringOtherApps)
    if Services.AXUIElementPerformAction(element, "AXRaise") != 0:
        raise ExecutionFailed("macOS did not bring the window to the front.", windowId=window_id)
    return _found(window_id)


def _place(window_id: str, bounds: Rect) -> Window:
    import ApplicationServices as Services
    import Quartz

    element = _element(_found(window_id))
    corner = Services.AXValueCreate(Services.kAXValueCGPointType, Quartz.CGPointMake(bounds.x, bounds.y))
    size = Services.AXValueCreate(Services.kAXValueCGSizeType, Quartz.CGSizeMake(bounds.width, bounds.height))
    Services.AXUIElementSetAttributeValue(element, "AXPosition", corner)
    Services.AXUIElementSetAttributeValue(element, "AXSize", size)
    return _found(window_id)


def _close(window_id: str) -> bool:
    import ApplicationServices as Services

    element = _element(_found(window_id))
    error, button = Services.AXUIElementCopyAttributeValue(element, "AXCloseButton", None)
    if error != 0 or Services.AXUIElementPerformAction(button, "AXPress") != 0:
        return False
    return all(window.id != window_id for window in _listed(with_popups=True))


# The permissions macOS asks the person for, checked before use so that nothing fails silently.


def need_screen_recording() -> None:
    """Raise OsPermissionRequired unless the screen may be recorded."""
    import Quartz

    if not Quartz.CGPreflightScreenCaptureAccess():
        raise OsPermissionRequired(
            "Screen recording is not granted. Allow it in System Settings, Privacy & Security, then restart the service.",
            grant="screen",
        )


def need_accessibility() -> None:
    """Raise OsPermissionRequired unless input and windows may be controlled; macOS drops events silently."""
    import ApplicationServices

    if not ApplicationServices.AXIsProcessTrusted():
        raise OsPermissionRequired(
            "Control of the computer is not granted. Allow it in System Settings, Privacy & Security, Accessibility.",
            grant="accessibility",
        )
