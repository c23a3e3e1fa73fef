"""Confirms the lines that the engine reports against the files themselves.

The engine opens files by name, and a command may exchange a file with a link to a closed one between its look and its open. So a
line counts only where the file of that name, opened beneath the folder without following links, has it.
"""

import codecs
import stat
from types import TracebackType
from typing import Self

from computer_linker.providers.search.text import Record
from computer_linker.providers.views.names import Parents
from computer_linker.system import os

# O_NONBLOCK: a pipe may lie there by now.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_MARK = codecs.BOM_UTF8
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MAX_DECODED = 32 << 20
"""Of a file in another encoding, in which the engine counts bytes of UTF-8; lines beyond it are not confirmed."""


class Confirmed:
    """Tells whether a line is in its file; the file and its folder stay open for the next line."""

    def __init__(self, folder: int) -> None:
        self._parents = Parents(folder)
        self._path: bytes | None = None
        self._file: int | None = None
        self._mark = b""
        self._decoded: bytes | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._close()
        self._parents.__exit__()

    def __call__(self, record: Record) -> bool:
        if os.open not in os.supports_dir_fd:
            return True
        if record.path != self._path:
            self._close()
            self._path = record.path
            self._open(record.path)
        if self._file is None:
            return False
        try:
            return self._has(self._file, record.offset, record.text)
        except OSError:
            return False

    def _has(self, file: int, offset: int, text: bytes) -> bool:
        if self._mark not in _WIDE and any(
            os.pread(file, len(text), offset + skipped) == text for skipped in dict.fromkeys((len(self._mark), 0))
        ):
            return True
        if not self._mark:
            return False
        if self._decoded is None:
            encoding = "utf-8-sig" if self._mark == _MARK else "utf-16"
            content = os.pread(file, _MAX_DECODED, 0)
            self._decoded = content.decode(encoding, "replace").encode("utf-8", "replace")
        return self._decoded[offset : offset + len(text)] == text

    def _open(self, path: bytes) -> None:
        try:
            parts = tuple(os.fsdecode(path).split("/"))
            if ".." in parts:
                return
            self._file = os.open(parts[-1], _FILE, dir_fd=self._parents.of(parts))
            start = os.pread(self._file, len(_MARK), 0) if stat.S_ISREG(os.fstat(self._file).st_mode) else None
        except OSError:
            start = None
        if start is None:
            self._close()
        else:
            self._mark = next((each for each in (_MARK, *_WIDE) if start.startswith(each)), b"")

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
        self._file, self._mark, self._decoded = None, b"", None
