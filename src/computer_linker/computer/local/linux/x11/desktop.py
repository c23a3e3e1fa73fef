"""The X11 facets of a computer, on one connection."""

from collections.abc import Mapping

from computer_linker.computer.base import Computer
from computer_linker.computer.local.linux.apps import LinuxApps
from computer_linker.computer.local.linux.facts import LinuxFacts
from computer_linker.computer.local.linux.notifications import BusNotifications
from computer_linker.computer.local.linux.x11.clipboard import X11Clipboard
from computer_linker.computer.local.linux.x11.connection import Connection
from computer_linker.computer.local.linux.x11.input_watch import input_seen
from computer_linker.computer.local.linux.x11.keyboard import X11Keyboard
from computer_linker.computer.local.linux.x11.pointer import X11Pointer
from computer_linker.computer.local.linux.x11.screen import X11Screen
from computer_linker.computer.local.linux.x11.windows import X11Windows


def provide_x11(computer: Computer, environ: Mapping[str, str]) -> None:
    """Provide the X11 facets. Nothing is opened before the first use."""
    connection = Connection(environ["DISPLAY"])
    windows = X11Windows(connection)
    computer.provide("screen", X11Screen(connection), backend="x11")
    computer.provide("pointer", X11Pointer(connection), backend="x11")
    computer.provide("keyboard", X11Keyboard(connection), backend="x11")
    computer.provide("windows", windows, backend="x11")
    computer.provide("clipboard", X11Clipboard(connection), backend="x11")
    computer.provide("apps", LinuxApps(windows, environ, lambda: computer.scopes()), backend="desktop entries")
    facts = LinuxFacts("x11", environ, watch=lambda: input_seen(connection.name))
    computer.provide("facts", facts, backend="linux")
    computer.provide("notifications", BusNotifications(environ), backend="session bus")
    computer.on_close(connection.aclose)
