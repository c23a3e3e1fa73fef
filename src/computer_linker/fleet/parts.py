"""Answers larger than the server's messages travel in parts; the seal is over the whole."""

from computer_linker.errors import InvalidRequest
from computer_linker.fleet.seal import MAX_MESSAGE

_HEAD = 8
_MAX_PARTS = MAX_MESSAGE // 1024 + 1
_ROOM = 2048
"""What the server's limit must leave for subject and headers."""


def split(raw: bytes, largest: int) -> list[bytes]:
    """The parts, each with its number and how many there are."""
    size = max(1024, largest - _ROOM)
    pieces = [raw[at : at + size] for at in range(0, len(raw), size)] or [b""]
    count = len(pieces).to_bytes(4, "big")
    return [number.to_bytes(4, "big") + count + piece for number, piece in enumerate(pieces)]


class Parts:
    """Puts one answer together again. The server keeps the order; whatever breaks it starts over."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, raw: bytes) -> bytes | None:
        """The whole once its last part is there. Raises InvalidRequest for parts that do not fit."""
        number, count = int.from_bytes(raw[:4], "big"), int.from_bytes(raw[4:_HEAD], "big")
        if number == 0:
            self._pieces, self._size = [], 0
        self._size += len(raw)
        if (
            len(raw) < _HEAD
            or number != len(self._pieces)
            or number >= count
            or count > _MAX_PARTS
            or self._size > MAX_MESSAGE
        ):
            self._pieces, self._size = [], 0
            raise InvalidRequest("An answer came in parts that do not fit.", rule="malformed")
        self._pieces.append(raw[_HEAD:])
        if len(self._pieces) < count:
            return None
        whole, self._pieces, self._size = b"".join(self._pieces), [], 0
        return whole
