"""The entries of an open folder."""

import ctypes
import os
import stat as modes
import struct
from collections.abc import Callable, Generator, Iterator
from types import TracebackType
from typing import Any

from computer_linker.system.windows import nt

_RESTART, _NEXT = 11, 10
"""FileIdBothDirectoryRestartInfo, FileIdBothDirectoryInfo."""
_BUFFER = 1 << 16
_NO_MORE = (18, 2)
_NAME_AT = 104
_RECORD = "<I52xIII28xQ"
"""Of FILE_ID_BOTH_DIR_INFO: where the next one begins, attributes, length of the name, reparse tag, file id."""
Stat = Callable[..., os.stat_result]


class Entry:
    """As os.DirEntry: a name in an open folder, which must stay open for `stat`."""

    __slots__ = ("_attributes", "_folder", "_inode", "_stat", "_tag", "name", "path")

    def __init__(self, name: str, attributes: int, tag: int, inode: int, folder: int, stat: Stat) -> None:
        self.name = self.path = name
        self._attributes, self._tag, self._inode = attributes, tag, inode
        self._folder, self._stat = folder, stat

    def __class_getitem__(cls, _: object) -> type["Entry"]:
        return cls

    def inode(self) -> int:
        return self._inode

    def is_symlink(self) -> bool:
        return bool(self._attributes & nt.ATTRIBUTE_REPARSE and self._tag & _SURROGATE)

    is_junction = is_symlink

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return bool(self._attributes & nt.ATTRIBUTE_DIRECTORY) and not self.is_symlink()

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return not self._attributes & nt.ATTRIBUTE_DIRECTORY and not self.is_symlink()

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return self._stat(self.name, dir_fd=self._folder, follow_symlinks=False)

    def __fspath__(self) -> str:
        return self.path


_SURROGATE = 0x20000000
"""The bit of reparse tags that stand for another name: symbolic links and junctions."""


class Entries:
    """As the iterator of os.scandir."""

    def __init__(self, folder: int, stat: Stat) -> None:
        self._found = _entries(folder, stat)

    def __iter__(self) -> Iterator[Entry]:
        return self

    def __next__(self) -> Entry:
        return next(self._found)

    def __enter__(self) -> "Entries":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._found.close()


def names_in(folder: int) -> list[str]:
    """The names in an open folder."""
    return [entry.name for entry in Entries(folder, lambda *_, **__: os.stat_result((modes.S_IFREG,) + (0,) * 9))]


def _entries(folder: int, stat: Stat) -> Generator[Entry, None, None]:
    """Read through a handle of its own: the position in the folder belongs to the handle."""
    handle = nt.create(nt.handle_of(folder), "", nt.GENERIC_READ, nt.FILE_OPEN, nt.DIRECTORY_FILE)
    try:
        buffer = ctypes.create_string_buffer(_BUFFER)
        what = _RESTART
        while nt.kernel32().GetFileInformationByHandleEx(handle, what, buffer, _BUFFER):
            what = _NEXT
            yield from _parsed(buffer, folder, stat)
        if getattr(ctypes, "get_last_error")() not in _NO_MORE:  # noqa: B009  # exists on Windows alone
            raise nt.last_failure()
    finally:
        nt.close(handle)


def _parsed(buffer: Any, folder: int, stat: Stat) -> Iterator[Entry]:
    raw = bytes(buffer.raw)
    at = following = 0
    while True:
        at += following
        following, attributes, length, tag, inode = struct.unpack_from(_RECORD, raw, at)
        name = raw[at + _NAME_AT : at + _NAME_AT + length].decode("utf-16-le", "surrogatepass")
        if name not in (".", ".."):
            yield Entry(name, attributes, tag, inode, folder, stat)
        if not following:
            return
