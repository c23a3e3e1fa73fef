"""Provides the accessibility facet, or the reason why there is none."""

from collections.abc import Mapping
from importlib.util import find_spec

from computer_linker.computer.base import Computer
from computer_linker.computer.manifest import Absent
from computer_linker.errors import ProviderUnavailable, UnsupportedPlatform
from computer_linker.extras import remedy


def provide_accessibility(computer: Computer, environ: Mapping[str, str]) -> None:
    """AT-SPI on the session bus of this environment. Nothing is opened before its first use."""
    address = session_address(environ)
    if address is None:
        reason = "There is no session bus here, so applications cannot describe their controls."
        absent = Absent("accessibility", reason, "Start the service inside the desktop session.", UnsupportedPlatform)
        computer.provide("accessibility", absent, backend="")
    elif find_spec("dbus_fast") is None:
        reason = "Accessibility needs dbus-fast, which is not installed."
        absent = Absent("accessibility", reason, remedy("desktop"), ProviderUnavailable)
        computer.provide("accessibility", absent, backend="")
    else:
        from computer_linker.computer.local.linux.atspi.facet import AtspiAccessibility

        facet = AtspiAccessibility(address, computer.windows, on_wayland=bool(environ.get("WAYLAND_DISPLAY")))
        computer.provide("accessibility", facet, backend="at-spi")


def session_address(environ: Mapping[str, str]) -> str | None:
    """The address of the session bus, from the environment or the default path."""
    if environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return environ["DBUS_SESSION_BUS_ADDRESS"]
    run = environ.get("XDG_RUNTIME_DIR")
    return f"unix:path={run}/bus" if run else None
