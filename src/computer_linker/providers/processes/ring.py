"""The newest output of a long-running process: a bounded ring in an unnamed file, read by stable cursors."""

import tempfile
from collections import deque
from pathlib import Path
from typing import Literal

from typing_extensions import TypedDict

from computer_linker.providers.processes.streams import whole_characters
from computer_linker.system import os

Stream = Literal["stdout", "stderr"]
CAPACITY = 4 * 1024 * 1024
_SEGMENT = 65_536


class Chunk(TypedDict):
    stream: Stream
    text: str


class Ring:
    """Output of both streams in order of arrival. A cursor is the number of bytes written before it.

    The file has no name, so nothing of it outlives the service. Pieces end on whole characters, so that no reader ever
    sees half of one.
    """

    def __init__(self, folder: Path, capacity: int = CAPACITY) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # held as long as the ring
        self._capacity = capacity
        self._segments: deque[tuple[int, int, Stream]] = deque()
        self._partial: dict[Stream, bytes] = {"stdout": b"", "stderr": b""}
        self.start = 0
        self.end = 0

    def write(self, stream: Stream, data: bytes) -> None:
        """Append output, dropping the oldest."""
        data = self._partial[stream] + data
        whole = whole_characters(data)
        self._partial[stream] = data[whole:]
        self._add(stream, data[:whole])

    def finish(self) -> None:
        """Append the buffered bytes of characters that will never be completed."""
        for stream in ("stdout", "stderr"):
            left, self._partial[stream] = self._partial[stream], b""
            self._add(stream, left)

    def read(
        self, cursor: int, max_bytes: int, stream: Stream | Literal["all"] = "all"
    ) -> tuple[list[Chunk], int, int]:
        """Pieces from `cursor` on, the cursor after them, and how many bytes before them are gone."""
        dropped = max(0, self.start - cursor)
        at = max(cursor, self.start)
        chunks: list[Chunk] = []
        room = max_bytes
        for begin, end, source in list(self._segments):
            if end <= at:
                continue
            if room <= 0:
                break
            if stream not in ("all", source):
                at = end
                continue
            at = max(begin, at)
            data = self._piece(at, end, room)
            if not data and chunks:
                break
            # A limit smaller than the next character still returns that character: a reader must advance.
            data = data or self._piece(at, end, 4)
            at += len(data)
            room -= len(data)
            _append(chunks, source, data.decode("utf-8", errors="replace"))
            if at < end:
                break
        return chunks, at, dropped

    def between(self, begin: int, end: int) -> bytes:
        """The raw output between two cursors, as far as it is still kept."""
        return self._at(max(begin, self.start), min(end, self.end))

    @property
    def is_closed(self) -> bool:
        return self._file.closed

    def close(self) -> None:
        self._file.close()

    def _add(self, stream: Stream, data: bytes) -> None:
        if not data:
            return
        if len(data) > self._capacity:
            skipped = len(data) - self._capacity
            self._segments.clear()
            self.end += skipped
            self.start = self.end
            data = data[skipped:]
        self._put(data)
        last = self._segments[-1] if self._segments else None
        if last is not None and last[2] == stream and last[1] - last[0] < _SEGMENT:
            self._segments[-1] = (last[0], self.end + len(data), stream)
        else:
            self._segments.append((self.end, self.end + len(data), stream))
        self.end += len(data)
        self._make_room()

    def _make_room(self) -> None:
        self.start = max(self.start, self.end - self._capacity)
        while self._segments and self._segments[0][1] <= self.start:
            self._segments.popleft()

    def _put(self, data: bytes) -> None:
        place = self.end % self._capacity
        first = min(len(data), self._capacity - place)
        os.pwrite(self._file.fileno(), data[:first], place)
        if first < len(data):
            os.pwrite(self._file.fileno(), data[first:], 0)

    def _piece(self, at: int, end: int, room: int) -> bytes:
        data = self._at(at, min(end, at + room))
        return data if at + len(data) == end else data[: whole_characters(data)]

    def _at(self, begin: int, end: int) -> bytes:
        if end <= begin:
            return b""
        place = begin % self._capacity
        first = min(end - begin, self._capacity - place)
        data = os.pread(self._file.fileno(), first, place)
        if first < end - begin:
            data += os.pread(self._file.fileno(), end - begin - first, 0)
        return data


def _append(chunks: list[Chunk], stream: Stream, text: str) -> None:
    if not text:
        return
    if chunks and chunks[-1]["stream"] == stream:
        chunks[-1]["text"] += text
    else:
        chunks.append({"stream": stream, "text": text})
