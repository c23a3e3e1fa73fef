"""The X11 facets of a computer, on one connection."""

from collections.abc import Mapping

from computer_linker.computer.base import Computer
from computer_linker.computer.local.linux.x11.clipboard import X11Clipboard
from computer_linker.computer.local.linux.x11.connection import Connection
from computer_linker.computer.local.linux.x11.keyboard import X11Keyboard
from computer_linker.computer.local.linux.x11.pointer import X11Pointer
from computer_linker.computer.local.linux.x11.screen import X11Screen
from computer_linker.computer.local.linux.x11.windows import X11Windows


def provide_x11(computer: Computer, environ: Mapping[str, str]) -> None:
    """Put the X11 facets in place. Nothing is opened before the first use."""
    connection = Connection(environ["DISPLAY"])
    computer.provide("screen", X11Screen(connection), backend="x11")
    computer.provide("pointer", X11Pointer(connection), backend="x11")
    computer.provide("keyboard", X11Keyboard(connection), backend="x11")
    computer.provide("windows", X11Windows(connection), backend="x11")
    computer.provide("clipboard", X11Clipboard(connection), backend="x11")
    computer.on_close(connection.aclose)
