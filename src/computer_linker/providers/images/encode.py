"""A capture as a file of the format asked for, no larger than what clients accept."""

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.errors import ProviderUnavailable
from computer_linker.extras import remedy
from computer_linker.model.geometry import ImageMap

if TYPE_CHECKING:
    from PIL.Image import Image


import struct
import zlib
from typing import Any

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


ImageFormat = Literal["png", "jpeg", "webp"]
MAX_SIDE = 2000
MAX_BYTES = 1_000_000
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Encoded:
    """An encoded image, and how its pixels map to the desktop."""

    format: ImageFormat
    data: bytes
    map: ImageMap

    @property
    def mime(self) -> str:
        return f"image/{self.format}"


@dataclass(frozen=True, slots=True)
class Fit:
    """The largest image wanted. A capture is never made larger than it is."""

    max_width: int = MAX_SIDE
    max_height: int = MAX_SIDE
    max_bytes: int = MAX_BYTES

    def within(self, width: int | None, height: int | None) -> "Fit":
        """Narrowed to what a caller asked for."""
        return Fit(min(self.max_width, width or MAX_SIDE), min(self.max_height, height or MAX_SIDE), self.max_bytes)


def encode(pixmap: Pixmap, format: ImageFormat = "png", fit: Fit = Fit()) -> Encoded:
    """Encode, scaling down only as far as the fit demands."""
    factor = min(1.0, fit.max_width / pixmap.width, fit.max_height / pixmap.height)
    image = scaled(pixmap, factor)
    data = _encoded(image, format)
    for attempt in range(_ROUNDS):
        if len(data) <= fit.max_bytes:
            break
        if attempt == 0 and format == "png":
            data = encode_png(image, smaller=True)
            continue
        factor *= max(0.5, min(0.9, (fit.max_bytes / len(data)) ** 0.5))
        image = scaled(pixmap, factor)
        data = _encoded(image, format)
    return Encoded(format, data, image.map)


def scaled(pixmap: Pixmap, factor: float) -> Pixmap:
    """The same area in fewer pixels."""
    width, height = max(1, round(pixmap.width * factor)), max(1, round(pixmap.height * factor))
    if (width, height) == (pixmap.width, pixmap.height):
        return pixmap
    from PIL import Image

    smaller = _rgbx(pixmap).resize((width, height), Image.Resampling.LANCZOS, reducing_gap=2.0)
    return Pixmap(width, height, width * 4, smaller.tobytes("raw", "RGBX"), pixmap.area)


def to_image(pixmap: Pixmap) -> "Image":
    """The pixels as a Pillow image, for drawing and for formats other than PNG."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ProviderUnavailable(f"This image format needs Pillow. {remedy('desktop')}") from error
    size = (pixmap.width, pixmap.height)
    return Image.frombuffer("RGB", size, pixmap.data, "raw", "BGRX", pixmap.stride, 1)


def from_image(image: "Image", like: Pixmap) -> Pixmap:
    """A Pillow image as pixels that show the same area as `like`."""
    data = image.convert("RGB").tobytes("raw", "BGRX")
    return Pixmap(image.width, image.height, image.width * 4, data, like.area)


def _rgbx(pixmap: Pixmap) -> "Image":
    # Read as RGBX although it is BGRX: scaling treats all channels alike, so nothing has to be swapped.
    from PIL import Image

    return Image.frombuffer("RGBX", (pixmap.width, pixmap.height), pixmap.data, "raw", "RGBX", pixmap.stride, 1)


def _encoded(pixmap: Pixmap, format: ImageFormat) -> bytes:
    if format == "png":
        return encode_png(pixmap)
    out = io.BytesIO()
    image = to_image(pixmap)
    if format == "jpeg":
        image.save(out, "JPEG", quality=85, subsampling=0)
    else:
        image.save(out, "WEBP", quality=85, method=2)
    return out.getvalue()
