"""Frames: one msgpack map a WebSocket message, bounded and closed to unknown types; large bytes are frames of their own."""

import asyncio
import struct
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgpack

from computer_linker.errors import InvalidRequest, LimitExceeded
from computer_linker.registry.context import Progress

VERSION = 2
MAX_FRAME = 16 * 1024 * 1024
MAX_BLOBS = 64 * 1024 * 1024
"""All bytes beside one reply: a display of 4096 x 4096 pixels."""
MAX_ITEM = 256 * 1024
"""One item of a stream; a window of them may be in transit."""
PIECE = 512 * 1024
"""The most one binary frame carries, so that a heartbeat or a short answer never waits long behind a picture."""
MAX_PARTS = 100_000
"""Values in a call: with tiny ones, a frame could hold enough to take minutes and gigabytes to parse."""
MAX_REPLY_PARTS = 1_500_000
"""The same for an answer, which may list a hundred thousand files."""
_KINDS = frozenset(
    {"challenge", "hello", "pair", "call", "reply", "progress", "cancel", "error", "item", "credit", "end"}
)
_BINARY = 0xC1
"""The one byte no msgpack value begins with: it marks a frame of raw bytes."""
_HEAD = struct.Struct(">BIH")


class Piece(NamedTuple):
    """Some bytes of a numbered blob that belongs to the reply of a call."""

    call_id: int
    blob: int
    data: memoryview


def packed(frame: dict[str, Any]) -> bytes:
    """The bytes of a frame."""
    return bytes(msgpack.packb(frame, use_bin_type=True, default=_as_list))


def pieces_of(call_id: int, blobs: list[bytes]) -> list[bytes]:
    """The binary frames that carry these blobs, in order."""
    made = []
    for index, blob in enumerate(blobs):
        head, view = _HEAD.pack(_BINARY, call_id, index), memoryview(blob)
        made += [b"".join((head, view[at : at + PIECE])) for at in range(0, len(view), PIECE)]
    return made


def received(raw: bytes | str) -> dict[str, Any] | Piece:
    """A frame of an answer, or a piece of a blob."""
    if isinstance(raw, bytes) and len(raw) > _HEAD.size and raw[0] == _BINARY:
        _, call_id, index = _HEAD.unpack_from(raw)
        return Piece(call_id, index, memoryview(raw)[_HEAD.size :])
    return unpacked(raw, MAX_REPLY_PARTS)


def unpacked(raw: bytes | str, max_parts: int = MAX_PARTS) -> dict[str, Any]:
    """Parse a frame from the wire. Raises InvalidRequest for anything else."""
    if isinstance(raw, str):
        raise InvalidRequest("Frames are binary.")
    parts = _Parts(max_parts)
    try:
        frame = msgpack.unpackb(
            raw, raw=False, strict_map_key=True, max_str_len=MAX_FRAME, max_bin_len=MAX_FRAME, max_map_len=max_parts,
            max_array_len=max_parts, max_ext_len=0, object_pairs_hook=parts.map, list_hook=parts.list,
        )  # fmt: skip
    except (ValueError, TypeError, msgpack.exceptions.UnpackException, RecursionError) as error:
        raise InvalidRequest("A frame could not be read.", rule="malformed_frame") from error
    if type(frame) is not dict or type(frame.get("t")) is not str or frame["t"] not in _KINDS:
        raise InvalidRequest("A frame is a map with a known type.", rule="malformed_frame")
    return frame


class _Parts:
    """Counts the values of a frame while it is parsed, so that parsing stops at the limit."""

    __slots__ = ("_left",)

    def __init__(self, most: int) -> None:
        self._left = most

    def map(self, pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
        self._left -= 1 + len(pairs)
        made = dict(pairs)
        if self._left < 0 or len(made) != len(pairs):
            raise ValueError("a doubled key, or too much")
        return made

    def list(self, items: list[Any]) -> list[Any]:
        self._left -= 1 + len(items)
        if self._left < 0:
            raise ValueError("too much")
        return items


def _as_list(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} cannot travel")


_SMALLEST_PIECE = 4096
"""The least a piece of an answer counts: many tiny ones would use more memory than they carry."""
_REPORT_S = 0.05
"""Progress reports that arrive faster are dropped."""


@dataclass(slots=True)
class Exchange:
    """One call in flight: collects its reply within the agreed size."""

    answered: asyncio.Future[dict[str, Any]]
    report: Progress | None = None
    blobs: dict[int, list[memoryview]] = field(default_factory=dict)
    size: int = 0
    items: asyncio.Queue[Any] | None = None
    reported_at: float = 0.0

    def take(self, frame: dict[str, Any] | Piece) -> None:
        """Process what arrived for it. Raises for more than was agreed."""
        if isinstance(frame, Piece):
            self.size += max(len(frame.data), _SMALLEST_PIECE)
            if self.size > MAX_BLOBS:
                raise LimitExceeded("The answer is larger than was agreed.")
            self.blobs.setdefault(frame.blob, []).append(frame.data)
        elif frame["t"] == "progress":
            self._progress(str(frame.get("message"))[:500], _number(frame.get("current")), _number(frame.get("total")))
        elif frame["t"] == "item":
            if self.items is None or self.items.full():
                raise LimitExceeded("More items came than there was room for.")
            self.items.put_nowait(frame.get("item"))
        elif not self.answered.done():
            self.answered.set_result(frame)

    def _progress(self, message: str, current: float | None, total: float | None) -> None:
        now = asyncio.get_running_loop().time()
        is_last = total is not None and current == total
        if self.report is not None and (is_last or now - self.reported_at >= _REPORT_S):
            self.reported_at = now
            self.report(message, current, total)

    def joined(self) -> list[bytes]:
        """The blobs, each joined from its pieces."""
        return [b"".join(self.blobs[index]) for index in sorted(self.blobs)]


def _number(value: Any) -> float | None:
    return value if type(value) in (int, float) else None
