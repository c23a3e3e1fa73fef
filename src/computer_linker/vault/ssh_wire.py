"""Strings and numbers of the SSH protocol (RFC 4251 section 5)."""


class Unreadable(Exception):
    """Bytes that are not what their place in the protocol wants."""


class Wire:
    """Reads values in order. Raises Unreadable for what is not there."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def take(self, count: int) -> bytes:
        if count > len(self._data) - self.at:
            raise Unreadable
        self.at += count
        return self._data[self.at - count : self.at]

    def uint32(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def string(self) -> bytes:
        return self.take(self.uint32())

    def number(self) -> int:
        """A number that is not negative."""
        raw = self.string()
        if raw and raw[0] & 0x80:
            raise Unreadable
        return int.from_bytes(raw, "big")

    def flag(self) -> bool:
        return self.take(1) != b"\0"

    def finish(self) -> None:
        """Refuse further bytes."""
        if self.at != len(self._data):
            raise Unreadable


def string(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def number(value: int) -> bytes:
    """A number that is not negative, in as few bytes as it needs."""
    return string(value.to_bytes(value.bit_length() // 8 + 1, "big") if value else b"")
