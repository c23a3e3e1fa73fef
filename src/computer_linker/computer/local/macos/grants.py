"""The permissions macOS asks the person for, checked before use so that nothing fails silently."""

from computer_linker.errors import OsPermissionRequired


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
