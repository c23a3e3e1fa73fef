"""A contact sheet: frames spread evenly over a recording, in one image."""

import io
from dataclasses import dataclass
from typing import Any

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.providers.images.encode import Fit, encode, to_image

MAX_FRAMES = 24
_FRAME = Fit(1280, 1280, 400_000)
_COLUMNS, _CELL, _GAP, _CAPTION = 4, 320, 12, 18


@dataclass(frozen=True, slots=True)
class Frame:
    """One stored frame, and its time."""

    at_s: float
    data: bytes
    """A JPEG."""


class Sheet:
    """Stores at most 24 frames: when full, every second one is dropped and the interval doubles. Blocking."""

    def __init__(self, every_s: float) -> None:
        self.frames: list[Frame] = []
        self._every_s = every_s

    def add(self, frame: Pixmap, at_s: float, *, is_last: bool = False) -> None:
        """Add a frame, if one is due."""
        if not is_last and self.frames and at_s - self.frames[-1].at_s < self._every_s:
            return
        if is_last and self.frames and self.frames[-1].at_s == at_s:
            return
        self.frames.append(Frame(at_s, encode(frame, "jpeg", _FRAME).data))
        if len(self.frames) > MAX_FRAMES:
            self.frames = self.frames[::2]
            self._every_s *= 2

    def picture(self) -> bytes:
        """All frames in rows, each labelled with its time, as a PNG."""
        from PIL import Image, ImageDraw

        pictures = [Image.open(io.BytesIO(frame.data)) for frame in self.frames]
        for one in pictures:
            one.thumbnail((_CELL, _CELL))
        columns = min(_COLUMNS, len(pictures))
        rows = -(-len(pictures) // columns)
        height = max(one.height for one in pictures) + _CAPTION
        size = (columns * (_CELL + _GAP) + _GAP, rows * (height + _GAP) + _GAP)
        sheet = Image.new("RGB", size, "#f4f4f2")
        pen = ImageDraw.Draw(sheet)
        for number, (frame, one) in enumerate(zip(self.frames, pictures, strict=True)):
            x, y = _GAP + number % columns * (_CELL + _GAP), _GAP + number // columns * (height + _GAP)
            sheet.paste(one, (x, y))
            pen.text((x, y + one.height + 3), f"{frame.at_s:.1f} s", fill="#444444")
        return _png(sheet)


def needs_pillow() -> None:
    """Raise ProviderUnavailable, with the remedy, where Pillow is missing."""
    from computer_linker.model.geometry import Rect

    to_image(Pixmap(1, 1, 4, b"\0\0\0\0", Rect(x=0, y=0, width=1, height=1)))


def _png(image: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()
