"""Frames: one msgpack map a WebSocket message, bounded and closed to unknown types; large bytes go as frames of their own."""

import struct
from typing import Any, NamedTuple

import msgpack  # type: ignore[import-untyped,unused-ignore]  # it ships no types

from computer_linker.errors import InvalidRequest

VERSION = 2
MAX_FRAME = 16 * 1024 * 1024
MAX_BLOBS = 64 * 1024 * 1024
"""All bytes that travel beside one reply: a display of 4096 x 4096 pixels."""
MAX_ITEM = 256 * 1024
"""One item of a stream; a window of them may be on its way."""
PIECE = 512 * 1024
"""What one binary frame carries at most, so that a heartbeat or a short answer never waits long behind a picture."""
MAX_PARTS = 100_000
"""Values a call may be made of: of tiny ones, a frame could hold enough to take minutes and gigabytes to read."""
MAX_REPLY_PARTS = 1_500_000
"""The same for an answer, which may list a hundred thousand files."""
_KINDS = frozenset(
    {"challenge", "hello", "pair", "call", "reply", "progress", "cancel", "error", "item", "credit", "end"}
)
_BINARY = 0xC1
"""The one byte no msgpack value begins with: it marks a frame of bare bytes."""
_HEAD = struct.Struct(">BIH")


class Piece(NamedTuple):
    """Some bytes of the blob of that number that belongs to the reply of a call."""

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
    """What came in answer: a frame, or a piece of a blob."""
    if isinstance(raw, bytes) and len(raw) > _HEAD.size and raw[0] == _BINARY:
        _, call_id, index = _HEAD.unpack_from(raw)
        return Piece(call_id, index, memoryview(raw)[_HEAD.size :])
    return unpacked(raw, MAX_REPLY_PARTS)


def unpacked(raw: bytes | str, max_parts: int = MAX_PARTS) -> dict[str, Any]:
    """A frame from the wire. Raises InvalidRequest for anything else."""
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
    """Counts what a frame is made of while it is read, so that reading ends where it is too much."""

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
