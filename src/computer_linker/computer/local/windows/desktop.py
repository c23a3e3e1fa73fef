"""The Windows facets of a computer. Tested under wine; on Windows itself they are unproven."""

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.absent import Absent
from computer_linker.computer.local.windows.clipboard import WindowsClipboard
from computer_linker.computer.local.windows.facts import WindowsFacts
from computer_linker.computer.local.windows.input import WindowsKeyboard, WindowsPointer
from computer_linker.computer.local.windows.screen import WindowsScreen
from computer_linker.computer.local.windows.windows import Win32Windows


def provide_windows(computer: Computer) -> None:
    """Put the Windows facets in place; each says `is_proven: false` until its tests have run on Windows."""
    computer.provide("screen", WindowsScreen(), backend="gdi", is_proven=False)
    computer.provide("pointer", WindowsPointer(), backend="win32", is_proven=False)
    computer.provide("keyboard", WindowsKeyboard(), backend="win32", is_proven=False)
    computer.provide("windows", Win32Windows(), backend="win32", is_proven=False)
    computer.provide("clipboard", WindowsClipboard(), backend="win32", is_proven=False)
    computer.provide("facts", WindowsFacts(), backend="win32", is_proven=False)
    for facet in ("apps", "accessibility", "notifications"):
        computer.provide(facet, Absent(facet, f"On Windows, {facet} are not built yet."), backend="")
