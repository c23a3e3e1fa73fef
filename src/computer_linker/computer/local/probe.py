"""Chooses the backends for this system; each system's folder may then assume its own."""

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec

from computer_linker.computer.base import Computer
from computer_linker.computer.manifest import Absent, FacetName
from computer_linker.errors import LinkError, ProviderUnavailable, UnsupportedPlatform
from computer_linker.extras import remedy

DESKTOP: tuple[FacetName, ...] = (
    "screen", "pointer", "keyboard", "windows", "apps", "clipboard", "accessibility", "notifications",
)  # fmt: skip


def this_computer(environ: Mapping[str, str] | None = None) -> Computer:
    """The computer this service runs on, with the facets that work here. Nothing is opened before its first use."""
    from computer_linker.computer.local.portable.files import LocalFiles

    computer = Computer()
    computer.provide("files", LocalFiles(), backend=sys.platform)
    _provide_processes(computer)
    provide_desktop(computer, os.environ if environ is None else environ)
    return computer


def _provide_processes(computer: Computer) -> None:
    if sys.platform == "linux":
        from computer_linker.computer.local.linux.processes import LinuxProcesses

        computer.provide("processes", LinuxProcesses(), backend="launcher")
    elif sys.platform == "win32":
        from computer_linker.computer.local.windows.processes import WindowsProcesses

        computer.provide("processes", WindowsProcesses(), backend="job object", is_proven=False)
    else:
        from computer_linker.computer.local.portable.processes import PortableProcesses

        computer.provide("processes", PortableProcesses(), backend="portable", is_proven=False)


def provide_desktop(computer: Computer, environ: Mapping[str, str]) -> None:
    """Provide the desktop facets of this system and session, or the reasons why there are none."""
    if sys.platform == "darwin":
        _provide_macos(computer)
    elif sys.platform == "win32":
        _provide_windows(computer)
    else:
        _provide_linux(computer, environ)


def _provide_linux(computer: Computer, environ: Mapping[str, str]) -> None:
    from computer_linker.computer.local.linux.desktop_session import desktop_session

    session = desktop_session(environ)
    environ = session.environ
    wayland, x11 = environ.get("WAYLAND_DISPLAY"), environ.get("DISPLAY")
    if not wayland and not x11:
        _without(computer, UnsupportedPlatform, session.reason, "Start the service inside the desktop session.")
        from computer_linker.computer.local.linux.facts import LinuxFacts

        computer.provide("facts", LinuxFacts("none", environ), backend="linux")
    elif not wayland and find_spec("Xlib") is None:
        _without_extra(computer, "python-xlib")
    elif wayland:
        from computer_linker.computer.local.linux.wayland.desktop import provide_wayland

        provide_wayland(computer, environ)
    else:
        from computer_linker.computer.local.linux.x11.desktop import provide_x11

        provide_x11(computer, environ)
    if wayland or x11:
        from computer_linker.computer.local.linux.atspi.provide import provide_accessibility

        provide_accessibility(computer, environ)


def _provide_macos(computer: Computer) -> None:
    from computer_linker.computer.local.macos.facts import MacFacts

    computer.provide("facts", MacFacts(), backend="macos", is_proven=False)
    if find_spec("Quartz") is None:
        _without_extra(computer, "pyobjc")
        return
    from computer_linker.computer.local.macos.desktop import provide_macos

    provide_macos(computer)


def _provide_windows(computer: Computer) -> None:
    from computer_linker.computer.local.windows.desktop import provide_windows

    provide_windows(computer)


def _without_extra(computer: Computer, package: str) -> None:
    reason = f"The desktop needs {package}, which is not installed."
    _without(computer, ProviderUnavailable, reason, remedy("desktop"))


def _without(computer: Computer, error: type[LinkError], reason: str, remedy: str) -> None:
    for facet in DESKTOP:
        computer.provide(facet, Absent(facet, reason, remedy, error), backend="")
