"""A frame drawn around one place of a capture, so that a person sees which it is."""

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.model.geometry import Rect

_RED = b"\x30\x30\xe0\x00"
_THICK = 2


def outlined(pixmap: Pixmap, area: Rect) -> Pixmap:
    """The pixels with a red frame just around a desktop area."""
    scale = pixmap.width / pixmap.area.width
    left = round((area.x - pixmap.area.x) * scale) - _THICK
    top = round((area.y - pixmap.area.y) * scale) - _THICK
    right = round((area.x + area.width - pixmap.area.x) * scale) + _THICK
    bottom = round((area.y + area.height - pixmap.area.y) * scale) + _THICK
    pixels = bytearray(pixmap.data)
    for x0, y0, x1, y1 in (
        (left, top, right, top + _THICK),
        (left, bottom - _THICK, right, bottom),
        (left, top, left + _THICK, bottom),
        (right - _THICK, top, right, bottom),
    ):
        x0, x1 = max(0, x0), min(pixmap.width, x1)
        row = _RED * max(0, x1 - x0)
        for y in range(max(0, y0), min(pixmap.height, y1)):
            start = y * pixmap.stride + x0 * 4
            pixels[start : start + len(row)] = row
    return Pixmap(pixmap.width, pixmap.height, pixmap.stride, bytes(pixels), pixmap.area)
