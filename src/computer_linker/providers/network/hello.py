"""The name in a TLS ClientHello (RFC 8446 section 4.1.2, RFC 6066 section 3)."""

_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME = 22, 1, 0
MAX_HELLO = 65_536
ALERT = bytes((21, 3, 1, 0, 2, 2, 112))
"""A fatal alert: unrecognized_name."""


class Unreadable(Exception):
    """Bytes that begin like TLS and are no ClientHello."""


def is_tls(first: bytes | bytearray) -> bool:
    return bool(first) and first[0] == _HANDSHAKE


def server_name(data: bytes | bytearray) -> str | None:
    """The name in the hello at the start; None without one. Raises IndexError while bytes are missing."""
    hello = _Bytes(_handshake(data))
    hello.skip(2 + 32)
    hello.block(1)
    hello.block(2)
    hello.block(1)
    if not hello.left:
        return None
    extensions = _Bytes(hello.block(2))
    names: list[bytes] = []
    while extensions.left:
        kind, content = extensions.number(2), extensions.block(2)
        if kind == _SERVER_NAME:
            entries = _Bytes(_Bytes(content).block(2))
            while entries.left:
                entries.skip(1)
                names.append(entries.block(2))
    if len(names) > 1:
        raise Unreadable
    try:
        return names[0].decode("ascii") if names else None
    except UnicodeDecodeError:
        raise Unreadable from None


def _handshake(data: bytes | bytearray) -> bytes:
    """The body of the first handshake message, which may lie in several records."""
    body, at = bytearray(), 0
    while len(body) < 4 or len(body) < 4 + int.from_bytes(body[1:4], "big"):
        if len(data) < at + 5:
            raise IndexError
        size = int.from_bytes(data[at + 3 : at + 5], "big")
        if data[at] != _HANDSHAKE or data[at + 1] != 3 or not 0 < size <= 1 << 14:
            raise Unreadable
        if len(data) < at + 5 + size:
            raise IndexError
        body += data[at + 5 : at + 5 + size]
        at += 5 + size
    if body[0] != _CLIENT_HELLO:
        raise Unreadable
    return bytes(body[4 : 4 + int.from_bytes(body[1:4], "big")])


class _Bytes:
    """Reads numbers and blocks in order. What does not fit is Unreadable: the hello is whole already."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def skip(self, count: int) -> bytes:
        if count > self.left:
            raise Unreadable
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.skip(size), "big")

    def block(self, size: int) -> bytes:
        """A block after its length, which has `size` bytes."""
        return self.skip(self.number(size))
