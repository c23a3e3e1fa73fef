"""Whether two captures of the same area differ, and where."""

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.model.geometry import Rect

_CARET_WIDTH = 3
"""A blinking text caret is no effect."""


def changed_area(before: Pixmap, after: Pixmap) -> Rect | None:
    """The desktop rectangle around all differences; None when there are none worth the name."""
    if (before.width, before.height, before.stride, before.area) != (
        after.width,
        after.height,
        after.stride,
        after.area,
    ):
        return after.area
    if before.data == after.data:
        return None
    rows = [row for row in range(after.height) if _row(before, row) != _row(after, row)]
    columns = [_edges(_row(before, row), _row(after, row)) for row in rows]
    left, right = min(edge[0] for edge in columns), max(edge[1] for edge in columns)
    if right - left < _CARET_WIDTH:
        return None
    shape = Rect(x=left, y=rows[0], width=right - left + 1, height=rows[-1] - rows[0] + 1)
    return _on_desktop(after, shape)


def _row(pixmap: Pixmap, row: int) -> bytes:
    start = row * pixmap.stride
    return pixmap.data[start : start + pixmap.width * 4]


def _edges(before: bytes, after: bytes) -> tuple[int, int]:
    """The first and last pixel that differ in a row that does."""
    return _first(before, after) // 4, (len(after) - 1 - _first(before[::-1], after[::-1])) // 4


def _first(before: bytes, after: bytes) -> int:
    low, high = 0, len(after)
    while high - low > 1:
        middle = (low + high) // 2
        if before[low:middle] != after[low:middle]:
            high = middle
        else:
            low = middle
    return low


def _on_desktop(pixmap: Pixmap, shape: Rect) -> Rect:
    across, down = pixmap.area.width / pixmap.width, pixmap.area.height / pixmap.height
    return Rect(
        x=pixmap.area.x + int(shape.x * across),
        y=pixmap.area.y + int(shape.y * down),
        width=max(1, round(shape.width * across)),
        height=max(1, round(shape.height * down)),
    )
