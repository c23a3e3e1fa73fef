"""Ballast: space that the history gives up on a full disk, so that what makes room can still be recorded."""

import errno
import shutil
from pathlib import Path

from computer_linker.audit.layout import PRIVATE
from computer_linker.audit.retention import OWNER
from computer_linker.model.event import Event
from computer_linker.system import os

FULL = (errno.ENOSPC, errno.EDQUOT)
_BYTES = 4 << 20
_PIECE = 128 << 10
"""Given up at once: a program that still fills the disk gets no more than this for each record."""
_ROOM = 8 * _BYTES
"""It is made while this much is free."""
_FREEING = (".delete", ".stop", ".close", ".cancel", ".discard")


class Ballast:
    """A file of some megabytes beside the journal."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ballast"

    def give_up(self) -> bool:
        """Free a piece of it; False when nothing is left."""
        try:
            size = self._path.stat().st_size
            os.truncate(self._path, max(0, size - _PIECE))
        except OSError:
            return False
        return size > 0

    def restore(self) -> None:
        """Make it whole where there is room. Raises OSError. macOS and Windows cannot reserve space so."""
        if not hasattr(os, "posix_fallocate"):
            return
        has_room = shutil.disk_usage(self._path.parent).free >= _ROOM
        if not has_room or (self._path.exists() and self._path.stat().st_size >= _BYTES):
            return
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | PRIVATE, 0o600)
        try:
            os.posix_fallocate(handle, 0, _BYTES)
        finally:
            os.close(handle)


def may_use(event: Event) -> bool:
    """Whether an event is worth the ballast: what ends and removes things, and whatever the owner does."""
    return event.op.endswith(_FREEING) or event.principal.startswith(OWNER)
