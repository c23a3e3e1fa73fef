"""The result of reading one folder, and whether it is still current."""

from array import array
from dataclasses import dataclass

from computer_linker.providers.sandbox.judge import Entry, Parts
from computer_linker.providers.sandbox.pace import Pace
from computer_linker.system import os


@dataclass(slots=True)
class FolderState:
    """A folder's relevant entries, with its identity and change time when it was read."""

    device: int
    inode: int
    changed_ns: int
    is_settled: bool
    found: tuple[Entry, ...]
    below: dict[str, int]
    """Subfolders with their inodes."""
    files: "array[int]"
    """The inodes of its files: a secret may have a hard link."""
    size: int
    watch: int | None = None
    is_readable: bool = True
    is_cut_short: bool = False
    """It has more entries, or deeper folders, than are read."""
    is_inside: bool = False
    """It, or a folder above it, is protected."""


def is_same(root_fd: int, parts: Parts, state: FolderState, pace: Pace) -> bool:
    """True when the folder is the one that was read and has not changed since."""
    pace.step()
    if not state.is_settled or state.is_cut_short:
        return False
    try:
        # A link in the path would lead to another folder, which has another inode.
        now = os.stat("/".join(parts) or ".", dir_fd=root_fd, follow_symlinks=False)
    except OSError:
        return False
    return (now.st_dev, now.st_ino, now.st_ctime_ns) == (state.device, state.inode, state.changed_ns)
