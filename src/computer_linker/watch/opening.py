"""Opens what a row is about: a file in the pager, a page or picture in the desktop's own program."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from computer_linker.config.load import load
from computer_linker.watch.calls import Call


def file_of(home: Path, call: Call) -> Path | None:
    """The file a call was about, in the first root of its scope that has one."""
    scope, target = load(home).scope(call.event["scope"]), call.event["target"]
    if scope is None or not target:
        return None
    for root in scope.roots:
        path = Path(root) / target
        # A pipe or a device would not end; a link may lead anywhere, and is the owner's to follow by hand.
        if path.is_file() and not path.is_symlink():
            return path
    return None


def pager_of(path: Path) -> tuple[list[str], dict[str, str]]:
    """The command that shows a file, and its environment. The file is a client's: nothing in it is executed."""
    named = os.environ.get("PAGER", "").split()
    program = named if named and shutil.which(named[0]) else ["less"] if shutil.which("less") else ["more"]
    return [*program, os.fspath(path)], {**os.environ, "LESSSECURE": "1", "LESSOPEN": "", "LESS": ""}


def desktop_command(address: str) -> Sequence[str] | None:
    """The command that opens an address or a picture on this desktop; None over ssh and without one."""
    has_desktop = any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    program = shutil.which("xdg-open") or shutil.which("open")
    return [program, address] if has_desktop and program and "SSH_CONNECTION" not in os.environ else None


def open_on_desktop(command: Sequence[str]) -> None:
    """Start it without waiting, and without its output on the screen."""
    quiet = subprocess.DEVNULL
    subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
