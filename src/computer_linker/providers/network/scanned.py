"""A response's body on its way to a program, scanned so that no secret comes back in it."""

import zlib
from collections.abc import AsyncIterator, Callable, Iterator

from computer_linker.providers.network.messages import BadMessage, Framing, chunk_size, skip_trailers
from computer_linker.providers.network.stream import IDLE_S, Ended, Limit, Stream
from computer_linker.vault.mask import MaskedStream

_PIECE = 262_144
_INFLATED = 1_048_576
_GZIP = 31
"""The window of zlib that reads the head of a gzip file."""


Decode = Callable[[bytes], Iterator[bytes]]


async def copy_scanned(
    source: Stream,
    sink: Stream,
    framings: tuple[Framing, Framing],
    scan: MaskedStream,
    counted: Callable[[int], None],
    decode: Decode,
) -> None:
    """Send a body on: read by the first framing, decoded from its content coding, scanned, and written by the second.

    The end of what has come is held until more comes or the answer ends, except for lines that no secret can go on from.
    """
    framing, framed = framings
    async for piece in _pieces(source, framing, sink.limit):
        counted(len(piece))
        for part in decode(piece):
            # Never by time: a host that waits within a secret would pass it in two parts.
            passed = scan.feed(part)
            await _send(sink, passed + scan.whole_lines(), framed)
    await _send(sink, scan.finish(), framed)
    if framed == "chunked":
        await sink.send(b"0\r\n\r\n")


async def _send(sink: Stream, data: bytes, framed: Framing) -> None:
    if data:
        await sink.send(b"%x\r\n%b\r\n" % (len(data), data) if framed == "chunked" else data)


async def _pieces(source: Stream, framing: Framing, limit: Limit) -> AsyncIterator[bytes]:
    if framing != "chunked":
        async for piece in _taken(source, None if framing == "end" else framing, limit):
            yield piece
        return
    while size := await chunk_size(source):
        async for piece in _taken(source, size, limit):
            yield piece
        if await source.exactly(2) != b"\r\n":
            raise BadMessage("a chunk does not end where it should")
    await skip_trailers(source)


async def _taken(source: Stream, left: int | None, limit: Limit) -> AsyncIterator[bytes]:
    room = memoryview(bytearray(_PIECE if left is None else min(left, _PIECE)))
    while left is None or left > 0:
        if source.held:
            piece = source.take(len(room) if left is None else min(left, len(room)))
        else:
            limit.set(IDLE_S)
            count = await source.read_into(room if left is None else room[:left])
            piece = bytes(room[:count])
        if not piece:
            break
        left = None if left is None else left - len(piece)
        yield piece
    if left:
        raise Ended


def decoder(coding: bytes) -> Decode:
    """Decodes a body piece by piece, with bounded memory. Raises BadMessage for a coding that cannot be read here."""
    if not coding:
        return lambda piece: iter((piece,))
    if coding not in (b"gzip", b"x-gzip", b"deflate"):
        raise BadMessage(f"the answer is encoded as {coding.decode('latin-1')[:40]}, which cannot be checked")
    inflate = zlib.decompressobj(zlib.MAX_WBITS if coding == b"deflate" else _GZIP)

    def decoded(piece: bytes) -> Iterator[bytes]:
        while piece and not inflate.eof:
            try:
                yield inflate.decompress(piece, _INFLATED)
            except zlib.error:
                raise BadMessage("the answer cannot be decoded") from None
            piece = inflate.unconsumed_tail

    return decoded
