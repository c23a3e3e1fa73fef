"""Captured pixels as images: cut, masked, marked with numbers, and encoded no larger than what clients accept."""

import io
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.errors import ProviderUnavailable
from computer_linker.extras import remedy
from computer_linker.model.base import Model
from computer_linker.model.geometry import ImageMap, Rect, Window

if TYPE_CHECKING:
    from PIL.Image import Image

# Numbered boxes drawn over the controls of a capture, so that a model can name a number instead of a point.

MAX_MARKS = 200
_WORTH_MARKING = frozenset(
    "push-button toggle-button check-box radio-button menu menu-item check-menu-item radio-menu-item link page-tab "
    "combo-box push-button-menu text entry password-text spin-button slider list-item tree-item table-cell icon "
    "terminal autocomplete switch".split()
)
_COLOURS = ((214, 39, 40), (31, 119, 180), (44, 120, 44), (148, 63, 160), (180, 90, 10), (10, 130, 140))


class Mark(Model):
    """One numbered control of a marked capture."""

    number: int
    ref: str
    role: str
    name: str
    bounds: Annotated[Rect, Field(description="In the image's pixels.")]


@dataclass(frozen=True, slots=True)
class Marked:
    """One control that got a number."""

    number: int
    ref: str
    role: str
    name: str
    bounds: Rect
    """In desktop coordinates."""

    def in_image(self, mapping: ImageMap) -> Mark:
        """The mark in wire form, in image coordinates."""
        return Mark(
            number=self.number, ref=self.ref, role=self.role, name=self.name[:200], bounds=mapping.to_image(self.bounds)
        )


def choose(nodes: Sequence[Mapping[str, Any]], owner: Window, stack: Sequence[Window], area: Rect) -> list[Marked]:
    """The controls of a window that are visible in `area` and reachable by a click; numbered from 1."""
    chosen: list[Marked] = []
    for node in nodes:
        if node["role"] not in _WORTH_MARKING or not isinstance(node.get("bounds"), dict):
            continue
        bounds = Rect(**node["bounds"])
        seen = bounds.intersection(area)
        if seen.width < 4 or seen.height < 4 or not _is_on_top(seen, owner, stack):
            continue
        chosen.append(Marked(len(chosen) + 1, node["ref"], node["role"], node["name"], bounds))
    return chosen[:MAX_MARKS]


def draw(pixmap: Pixmap, marks: Sequence[Marked]) -> Pixmap:
    """The image with a box and a number for each mark."""
    from PIL import ImageDraw, ImageFont

    image = to_image(pixmap).copy()
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(size=13)
    for mark in marks:
        box = pixmap.map.to_image(mark.bounds)
        colour = _COLOURS[mark.number % len(_COLOURS)]
        pen.rectangle((box.x, box.y, max(box.x, box.right - 1), max(box.y, box.bottom - 1)), outline=colour, width=2)
        label = str(mark.number)
        left, top, right, bottom = pen.textbbox((0, 0), label, font=font)
        width, height = right - left + 6, bottom - top + 6
        # Above the control where there is room, so that its own text stays readable.
        y = box.y - height if box.y >= height else box.y
        x = min(max(0, box.x), max(0, image.width - width))
        pen.rectangle((x, y, x + width, y + height), fill=colour)
        pen.text((x + 3 - left, y + 3 - top), label, fill=(255, 255, 255), font=font)
    return from_image(image, pixmap)


def _is_on_top(bounds: Rect, owner: Window, stack: Sequence[Window]) -> bool:
    middle = bounds.center
    at = next((window for window in stack if window.is_visible and window.frame.contains(middle)), None)
    return at is None or at.pid == owner.pid


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
