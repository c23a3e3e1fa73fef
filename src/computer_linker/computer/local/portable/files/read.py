"""Reading: windows of bytes and lines, whole-file digests, and a cache of both between reads."""

import hashlib
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from computer_linker.computer.facets.files import Piece, Window
from computer_linker.computer.facets.lines import cut_text, whole_characters
from computer_linker.errors import Aborted, InvalidRequest
from computer_linker.system import os

_BLOCK = 1 << 16
_PORTION = 1 << 22
MAX_HASHED = 1 << 30
"""Larger files are read in part but not digested: that alone would take seconds."""
SMALL = 1 << 17
"""Files up to this size are read on the event loop; a thread would cost more than the read."""

Key = tuple[int, int, int, int, int]
Halted = Callable[[], bool]


@dataclass(slots=True)
class Survey:
    """The result of one pass over a file: its digest, and the newlines before the end of each block."""

    sha256: str
    newlines: "array[int]" = field(default_factory=lambda: array("Q"))

    @property
    def line_ends(self) -> int:
        return self.newlines[-1] if self.newlines else 0


class Memory:
    """An LRU cache of surveys by (device, inode, size, mtime, ctime)."""

    def __init__(self, max_files: int = 4096, max_blocks: int = 1_000_000) -> None:
        self._surveys: OrderedDict[Key, Survey] = OrderedDict()
        self._max_files = max_files
        self._max_blocks = max_blocks
        self._blocks = 0

    def get(self, key: Key) -> Survey | None:
        found = self._surveys.get(key)
        if found is not None:
            self._surveys.move_to_end(key)
        return found

    def put(self, key: Key, survey: Survey) -> None:
        old = self._surveys.pop(key, None)
        self._blocks += len(survey.newlines) - (len(old.newlines) if old else 0)
        self._surveys[key] = survey
        while len(self._surveys) > self._max_files or (self._blocks > self._max_blocks and len(self._surveys) > 1):
            _, dropped = self._surveys.popitem(last=False)
            self._blocks -= len(dropped.newlines)


def key_of(found: os.stat_result) -> Key:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def survey(descriptor: int, size: int, halted: Halted = lambda: False) -> Survey:
    """Digest the first `size` bytes and count their newlines, block by block."""
    digest = hashlib.sha256()
    newlines = array("Q")
    total = at = 0
    while at < size:
        if halted():
            raise Aborted("The read was stopped.")
        data = os.pread(descriptor, min(_PORTION, size - at), at)
        if not data:
            break
        digest.update(data)
        for start in range(0, len(data), _BLOCK):
            total += data.count(b"\n", start, start + _BLOCK)
            newlines.append(total)
        at += len(data)
    return Survey(digest.hexdigest(), newlines)


class Reader:
    """Reads windows of one open regular file of a known size."""

    def __init__(self, descriptor: int, size: int, about: Survey | None) -> None:
        self.descriptor = descriptor
        self.size = size
        self.about = about

    def piece(self, window: Window, links: int) -> Piece:
        """The requested window. Raises InvalidRequest for lines of a file too large to index."""
        sha256 = self.about.sha256 if self.about else None
        if not window.is_text or window.start_byte is not None:
            return self._bytes(window, links, sha256)
        start, line = self._start(window)
        content, counted = self._lines(start, window)
        return self._text(start, line, content, links, sha256, is_enough=counted)

    def _bytes(self, window: Window, links: int, sha256: str | None) -> Piece:
        start = min(window.start_byte or 0, self.size)
        content = os.pread(self.descriptor, min(window.max_bytes, self.size - start), start)
        if window.is_text and start + len(content) < self.size:
            content = whole_characters(content) or content
        end = start + len(content)
        return Piece(content, self.size, sha256, None, None, end if end < self.size else None, links)

    def _start(self, window: Window) -> tuple[int, int]:
        """The byte and line where the window starts."""
        if window.tail_lines is not None:
            return self._tail(window.tail_lines)
        line = window.start_line or 1
        if line == 1:
            return 0, 1
        return self._line_start(line), line

    def _line_start(self, line: int) -> int:
        """The byte where a line starts, the end of the file when it has fewer lines."""
        newlines = self._index().newlines
        block = bisect_right(newlines, line - 2)
        if block >= len(newlines):
            return self.size
        wanted = line - 1 - (newlines[block - 1] if block else 0)
        data = os.pread(self.descriptor, _BLOCK, block * _BLOCK)
        at = -1
        for _ in range(wanted):
            at = data.find(b"\n", at + 1)
            if at < 0:
                return self.size
        return block * _BLOCK + at + 1

    def _tail(self, lines: int) -> tuple[int, int]:
        total = self._index().line_ends
        has_open_line = self.size > 0 and os.pread(self.descriptor, 1, self.size - 1) != b"\n"
        count = total + (1 if has_open_line else 0)
        line = max(1, count - lines + 1)
        return (0, 1) if line == 1 else (self._line_start(line), line)

    def _index(self) -> Survey:
        if self.about is None:
            raise InvalidRequest(
                "Lines of so large a file are not counted; read it from a byte with `startByte`.", maxBytes=MAX_HASHED
            )
        return self.about

    def _lines(self, start: int, window: Window) -> tuple[bytes, bool]:
        """The content, and whether a line count (not the byte limit) ended it."""
        data = os.pread(self.descriptor, min(window.max_bytes + 1, self.size - start), start)
        if window.line_count is not None:
            end = _end_of_lines(data, window.line_count)
            if end is not None and end <= window.max_bytes:
                return data[:end], True
        return cut_text(data, window.max_bytes), False

    def _text(self, start: int, line: int, content: bytes, links: int, sha256: str | None, *, is_enough: bool) -> Piece:
        end = start + len(content)
        if end >= self.size:
            return Piece(content, self.size, sha256, line, None, None, links)
        if content.endswith(b"\n") or is_enough:
            return Piece(content, self.size, sha256, line, line + content.count(b"\n"), end, links)
        warning = f"Line {line} is longer than maxBytes and was cut; read on inside it with `startByte` {end}."
        return Piece(content, self.size, sha256, line, line + 1, end, links, (warning,))


def _end_of_lines(data: bytes, count: int) -> int | None:
    at = -1
    for _ in range(count):
        at = data.find(b"\n", at + 1)
        if at < 0:
            return None
    return at + 1
