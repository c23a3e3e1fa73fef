"""A capture as a file of the format asked for, no larger than what clients accept."""

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.errors import ProviderUnavailable
from computer_linker.extras import remedy
from computer_linker.model.geometry import ImageMap
from computer_linker.providers.images.png import encode_png

if TYPE_CHECKING:
    from PIL.Image import Image

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
