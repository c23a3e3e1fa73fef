"""Painting over what must not leave the machine, before anything is encoded."""

from collections.abc import Iterable

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.model.geometry import Rect

_GREY = b"\x60\x60\x60\x00"


def masked(pixmap: Pixmap, areas: Iterable[Rect]) -> Pixmap:
    """The pixels with these desktop areas painted grey."""
    hidden = [area for area in (pixmap.map.to_image(each) for each in areas) if not area.is_empty]
    if not hidden:
        return pixmap
    pixels = bytearray(pixmap.data)
    for area in hidden:
        row = _GREY * area.width
        for y in range(area.y, area.bottom):
            start = y * pixmap.stride + area.x * 4
            pixels[start : start + len(row)] = row
    return Pixmap(pixmap.width, pixmap.height, pixmap.stride, bytes(pixels), pixmap.area)
