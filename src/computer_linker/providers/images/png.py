"""PNG quickly: rows filtered in bulk, deflated by ISA-L where it is installed."""

import struct
import zlib
from typing import Any

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.errors import ProviderUnavailable
from computer_linker.extras import remedy

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_TRUECOLOUR = 2
_UP = 2
_STRIP = 64


def encode_png(pixmap: Pixmap, *, smaller: bool = False) -> bytes:
    """The pixels as a PNG of three channels; `smaller` takes several times longer for a smaller file."""
    np = _numpy()
    width, height = pixmap.width, pixmap.height
    pixels = np.frombuffer(pixmap.data, np.uint8).reshape(height, pixmap.stride)[:, : width * 4]
    # The difference to the row above turns flat areas into zeros, which deflate almost to nothing. In strips, so
    # that the working memory stays in the processor's cache.
    strip = min(height, _STRIP)
    above = np.empty((strip, width * 4), np.uint8)
    rows = np.empty((strip, width * 3 + 1), np.uint8)
    rows[:, 0] = _UP
    deflate = zlib.compressobj(7) if smaller else _fast_deflate()
    out = []
    for top in range(0, height, strip):
        count = min(strip, height - top)
        first = 1 if top == 0 else 0
        above[0] = pixels[0]
        np.subtract(
            pixels[top + first : top + count], pixels[top + first - 1 : top + count - 1], out=above[first:count]
        )
        for channel in range(3):
            rows[:count, 1 + channel :: 3] = above[:count, 2 - channel :: 4]
        out.append(deflate.compress(rows[:count]))
    out.append(deflate.flush())
    header = struct.pack(">IIBBBBB", width, height, 8, _TRUECOLOUR, 0, 0, 0)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", b"".join(out)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, body: bytes) -> bytes:
    check = zlib.crc32(body, zlib.crc32(kind))
    return b"".join((struct.pack(">I", len(body)), kind, body, struct.pack(">I", check)))


def _fast_deflate() -> Any:
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib.compressobj(1)
    return isal_zlib.compressobj(1)


def _numpy() -> Any:  # the module itself, loaded late: it is large
    try:
        import numpy
    except ImportError as error:
        raise ProviderUnavailable(f"Encoding needs numpy. {remedy('desktop')}") from error
    return numpy
