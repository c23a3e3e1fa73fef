"""How a capture is asked for and answered: the options and the result every screen operation shares."""

import base64
from typing import Annotated, Literal

from anyio import to_thread
from pydantic import Field

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.model.base import Model
from computer_linker.model.geometry import Rect
from computer_linker.providers.images.encode import Encoded, Fit, ImageFormat, encode

FILE_LIMIT = 50_000_000


class CaptureOptions(Model):
    """What to capture of the target, and how to give it."""

    format: ImageFormat = "png"
    max_width: Annotated[int | None, Field(gt=0, description="Scale down to this; never up.")] = None
    max_height: Annotated[int | None, Field(gt=0, description="Scale down to this; never up.")] = None
    region: Annotated[Rect | None, Field(description="A part, counted from the upper left of what is captured.")] = None
    cursor: Annotated[bool, Field(description="Draw the mouse cursor.")] = False
    marks: Annotated[bool, Field(description="Number the controls, and list them.")] = False
    returns: Annotated[
        Literal["bytes", "base64", "fileRef"],
        Field(alias="return", description="An image block, base64 in the data, or a file of the service."),
    ] = "bytes"

    @property
    def fit(self) -> Fit:
        """What a client accepts, narrowed to what was asked; a file may be as large as the screen is."""
        limit = Fit(100_000, 100_000, FILE_LIMIT) if self.returns == "fileRef" else Fit()
        return Fit(
            min(limit.max_width, self.max_width or limit.max_width),
            min(limit.max_height, self.max_height or limit.max_height),
            limit.max_bytes,
        )


class CaptureSource(Model):
    type: Literal["display", "window"]
    id: str


class Mark(Model):
    """One numbered control of a marked capture."""

    number: int
    ref: str
    role: str
    name: str
    bounds: Annotated[Rect, Field(description="In the image's pixels.")]


class Capture(Model):
    """A capture. Points in the image are bound to `frameId`: use it with desktop.click and the like."""

    frame_id: str
    format: ImageFormat
    width: int
    height: int
    scale: Annotated[float, Field(description="Image pixels a desktop unit.")]
    area: Annotated[Rect, Field(description="The part of the desktop it shows.")]
    source: CaptureSource
    size: Annotated[int, Field(description="Bytes of the encoded image.")]
    bytes_base64: str | None = None
    file_ref: Annotated[str | None, Field(description="A path in the service's own folder.")] = None
    hidden_areas: Annotated[int, Field(description="Password fields and excluded applications painted over.")] = 0
    marks: list[Mark] | None = None


async def encoded(pixmap: Pixmap, options: CaptureOptions) -> Encoded:
    """Encode in a worker thread: it takes milliseconds, or more for a large or noisy picture."""
    return await to_thread.run_sync(encode, pixmap, options.format, options.fit)


def as_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
