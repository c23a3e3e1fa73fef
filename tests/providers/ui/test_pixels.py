"""Whether two captures differ, and where."""

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.model.geometry import Rect
from computer_linker.providers.ui.pixels import changed_area

AREA = Rect(x=100, y=50, width=20, height=10)


def picture(*dots: tuple[int, int]) -> Pixmap:
    data = bytearray(20 * 10 * 4)
    for x, y in dots:
        data[(y * 20 + x) * 4] = 255
    return Pixmap(20, 10, 80, bytes(data), AREA)


def test_the_same_picture_has_not_changed() -> None:
    assert changed_area(picture((1, 1)), picture((1, 1))) is None


def test_a_change_is_found_where_it_is_on_the_desktop() -> None:
    assert changed_area(picture(), picture((2, 3), (9, 7))) == Rect(x=102, y=53, width=8, height=5)
    assert changed_area(picture(), picture((0, 0), (19, 9))) == AREA


def test_a_blinking_caret_is_no_change() -> None:
    assert changed_area(picture(), picture((5, 1), (5, 2), (5, 3))) is None
