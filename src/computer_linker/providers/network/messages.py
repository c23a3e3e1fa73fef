"""HTTP/1.1 messages, read strictly: what two servers could read differently is refused, not repaired (RFC 9112)."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from computer_linker.providers.network.pour import pour
from computer_linker.providers.network.stream import Ended, Limit, Stream

MAX_HEAD = 65_536
_MAX_CHUNK_LINE = 256
_REQUEST = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) ([!-~]{1,32768}) HTTP/1\.([01])")
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: ([\t -~\x80-\xff]*))?")
_FIELD = re.compile(
    rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}):[ \t]*((?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?)[ \t]*"
)
_LENGTH = re.compile(rb"[0-9]{1,18}")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\t -~]*)?\r\n")
_OF_CONNECTION = frozenset((b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization", b"proxy-authenticate",
                            b"te", b"trailer", b"upgrade", b"http2-settings", b"alt-svc"))  # fmt: skip
"""Fields of one connection. `alt-svc` would lead the program to another port, and to QUIC."""
_NEVER_DROPPED = frozenset((b"host", b"content-length", b"transfer-encoding"))
Framing = int | Literal["chunked", "end"]


class BadMessage(Exception):
    """A message that is not plain HTTP/1.1; the text is the reason."""


@dataclass(slots=True)
class Head:
    """The start line in its three parts, and the fields in their order with lower-case names."""

    first: tuple[bytes, bytes, bytes]
    fields: list[tuple[bytes, bytes]]
    minor: int

    def all(self, name: bytes) -> list[bytes]:
        return [value for field, value in self.fields if field == name]

    def tokens(self, name: bytes) -> set[bytes]:
        values = self.all(name)
        return {token.strip().lower() for value in values for token in value.split(b",")} if values else set()

    @property
    def keeps(self) -> bool:
        """Whether the connection stays open after this message, by its own fields."""
        return self.minor == 1 and b"close" not in self.tokens(b"connection")

    def forwarded(self, first: bytes, extra: list[tuple[bytes, bytes]]) -> bytes:
        """The head for the next connection: without the fields of this one, and without those that it names."""
        named = self.tokens(b"connection")
        dropped = _OF_CONNECTION | (named - _NEVER_DROPPED) if named else _OF_CONNECTION
        lines = [b"%b: %b" % field for field in self.fields if field[0] not in dropped]
        lines += (b"%b: %b" % field for field in extra)
        return b"\r\n".join((first, *lines, b"", b""))


async def read_request(stream: Stream) -> Head | None:
    """The next request's head; None when the connection ended before it."""
    head = await _read_head(stream)
    return None if head is None else parsed_request(head)


def parsed_request(head: bytes) -> Head:
    return _parsed(head, _REQUEST, lambda found: (found[1], found[2], b""), 3)


async def read_response(stream: Stream) -> Head:
    head = await _read_head(stream)
    if head is None:
        raise Ended
    return _parsed(head, _STATUS, lambda found: (b"", found[2], found[3] or b""), 1)


async def _read_head(stream: Stream) -> bytes | None:
    if not stream.held and not await stream.more():
        return None
    return await stream.until(b"\r\n\r\n", MAX_HEAD)


def _parsed(
    raw: bytes, start: re.Pattern[bytes], parts: Callable[[re.Match[bytes]], tuple[bytes, bytes, bytes]], minor: int
) -> Head:
    line, *lines = raw[:-4].split(b"\r\n")
    found = start.fullmatch(line)
    if found is None:
        raise BadMessage("the first line is not HTTP/1.1")
    try:
        fields = [(field[1].lower(), field[2]) for field in map(_FIELD.fullmatch, lines)]  # type: ignore[index]
    except TypeError:
        raise BadMessage("a header line is malformed") from None
    return Head(parts(found), fields, int(found[minor]))


def framing_of(head: Head, default: Framing) -> Framing:
    """How the body ends. Raises BadMessage where the fields contradict each other."""
    lengths, codings = head.all(b"content-length"), head.all(b"transfer-encoding")
    if codings:
        if lengths or len(codings) != 1 or codings[0].lower() != b"chunked" or head.minor == 0:
            raise BadMessage("the length of the body is ambiguous")
        return "chunked"
    if not lengths:
        return default
    if len(lengths) != 1 or not _LENGTH.fullmatch(lengths[0]):
        raise BadMessage("the length of the body is ambiguous")
    return int(lengths[0])


async def copy_body(
    source: Stream, sink: Stream, framing: Framing, counted: Callable[[int], None], limit: Limit
) -> None:
    """Send a body on in the same framing."""
    if framing == "chunked":
        await _copy_chunks(source, sink, counted, limit)
    elif framing == "end":
        await pour(source, sink, None, counted, limit)
    elif framing:
        await pour(source, sink, framing, counted, limit)


async def _copy_chunks(source: Stream, sink: Stream, counted: Callable[[int], None], limit: Limit) -> None:
    """Chunks with plain size lines; extensions and trailers, which nothing needs, are left out."""
    while True:
        size = await chunk_size(source)
        if size == 0:
            break
        await sink.send(b"%x\r\n" % size)
        await pour(source, sink, size, counted, limit)
        if await source.exactly(2) != b"\r\n":
            raise BadMessage("a chunk does not end where it should")
        await sink.send(b"\r\n")
    await skip_trailers(source)
    await sink.send(b"0\r\n\r\n")


async def chunk_size(source: Stream) -> int:
    found = _CHUNK.fullmatch(await source.until(b"\r\n", _MAX_CHUNK_LINE))
    if found is None:
        raise BadMessage("a chunk's size is malformed")
    return int(found[1], 16)


async def skip_trailers(source: Stream) -> None:
    left = MAX_HEAD
    while (line := await source.until(b"\r\n", left)) != b"\r\n":
        left -= len(line)
        if _FIELD.fullmatch(line[:-2]) is None:
            raise BadMessage("a trailer is malformed")


def refusal(why: str, status: str = "403 Forbidden") -> bytes:
    """A whole response that gives the reason."""
    body = f"Computer Linker: {why}\n".encode()
    head = (f"HTTP/1.1 {status}", "Content-Type: text/plain; charset=utf-8", f"Content-Length: {len(body)}",
            "Connection: close")  # fmt: skip
    return "\r\n".join((*head, "", "")).encode() + body
