"""Frames: one msgpack map a WebSocket message, bounded and closed to unknown types."""

from typing import Any

import msgpack  # type: ignore[import-untyped,unused-ignore]  # it ships no types

from computer_linker.errors import InvalidRequest

VERSION = 1
MAX_FRAME = 16 * 1024 * 1024
_KINDS = frozenset({"hello", "call", "reply", "progress", "cancel", "error", "stream", "more", "end", "pair"})


def packed(frame: dict[str, Any]) -> bytes:
    """The bytes of a frame."""
    return bytes(msgpack.packb(frame, use_bin_type=True))


def unpacked(raw: bytes | str) -> dict[str, Any]:
    """A frame from the wire. Raises InvalidRequest for anything else."""
    if isinstance(raw, str):
        raise InvalidRequest("Frames are binary.")
    try:
        frame = msgpack.unpackb(
            raw, raw=False, strict_map_key=True, max_str_len=MAX_FRAME, max_bin_len=MAX_FRAME, max_map_len=100_000,
            max_array_len=1_000_000, max_ext_len=0, object_pairs_hook=_object,
        )  # fmt: skip
    except (ValueError, TypeError, msgpack.exceptions.UnpackException, RecursionError) as error:
        raise InvalidRequest("A frame could not be read.") from error
    if type(frame) is not dict or frame.get("t") not in _KINDS:
        raise InvalidRequest("A frame is a map with a known type.")
    return frame


def _object(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a doubled key")
    return made
