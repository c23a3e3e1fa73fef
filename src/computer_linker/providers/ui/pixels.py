"""Compares two captures of the same area."""

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.model.geometry import Rect

Tiles = frozenset[tuple[int, int]]
"""Squares of the area by column and row, so that a clock in one corner neither hides nor fakes a change in another."""
TILE = 16
_NEAR = (-2, -1, 0, 1, 2)


def changed_tiles(before: Pixmap, after: Pixmap) -> Tiles | None:
    """The squares that differ; None when the two are not of the same area and size."""
    if (before.width, before.height, before.stride, before.area) != (
        after.width,
        after.height,
        after.stride,
        after.area,
    ):
        return None
    if before.data == after.data:
        return frozenset()
    found: set[tuple[int, int]] = set()
    for row in range(after.height):
        was, is_ = _row(before, row), _row(after, row)
        if was != is_:
            found |= {(column, row // TILE) for column in _columns(was, is_)}
    return frozenset(found)


def tiles_of(pixmap: Pixmap, bounds: Rect, margin: int) -> Tiles:
    """The squares that a desktop rectangle touches, with a margin around it."""
    across, down = pixmap.width / pixmap.area.width, pixmap.height / pixmap.area.height
    left, top = (bounds.x - margin - pixmap.area.x) * across, (bounds.y - margin - pixmap.area.y) * down
    right, bottom = left + (bounds.width + 2 * margin) * across, top + (bounds.height + 2 * margin) * down
    columns = range(int(left // TILE), int(right // TILE) + 1)
    rows = range(int(top // TILE), int(bottom // TILE) + 1)
    return frozenset((column, row) for column in columns for row in rows)


def unconnected(tiles: Tiles, restless: Tiles) -> Tiles:
    """The squares not connected to restless ones: what moves across the screen is elsewhere each time."""
    left, spreading = set(tiles), list(restless)
    while spreading and left:
        column, row = spreading.pop()
        near = {(column + across, row + down) for across in _NEAR for down in _NEAR} & left
        left -= near
        spreading += near
    return frozenset(left)


def _row(pixmap: Pixmap, row: int) -> bytes:
    start = row * pixmap.stride
    return pixmap.data[start : start + pixmap.width * 4]


def _columns(was: bytes, is_: bytes) -> list[int]:
    step = TILE * 4
    return [
        start // step for start in range(0, len(is_), step) if was[start : start + step] != is_[start : start + step]
    ]
