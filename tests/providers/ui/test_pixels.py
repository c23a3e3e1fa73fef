"""Which parts of two captures differ."""

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.model.geometry import Rect
from computer_linker.providers.ui.restless import changed_tiles, tiles_of, unconnected

AREA = Rect(x=100, y=50, width=64, height=32)


def picture(*dots: tuple[int, int]) -> Pixmap:
    data = bytearray(64 * 32 * 4)
    for x, y in dots:
        data[(y * 64 + x) * 4] = 255
    return Pixmap(64, 32, 256, bytes(data), AREA)


def test_the_same_picture_has_not_changed() -> None:
    assert changed_tiles(picture((1, 1)), picture((1, 1))) == frozenset()


def test_a_change_is_found_in_its_own_squares() -> None:
    assert changed_tiles(picture(), picture((2, 3), (40, 20))) == frozenset({(0, 0), (2, 1)})
    assert changed_tiles(picture(), picture((63, 31))) == frozenset({(3, 1)})


def test_captures_of_different_areas_are_not_compared() -> None:
    moved = Pixmap(64, 32, 256, picture().data, AREA.moved(1, 0))
    assert changed_tiles(picture(), moved) is None


def test_a_control_covers_the_squares_around_it() -> None:
    assert tiles_of(picture(), Rect(x=117, y=51, width=4, height=4), 0) == {(1, 0)}
    assert tiles_of(picture(), Rect(x=117, y=51, width=4, height=4), 2) == {(0, -1), (0, 0), (1, -1), (1, 0)}


def test_what_hangs_together_with_something_restless_is_left_out() -> None:
    moving, still = {(5, 5), (6, 5), (8, 5)}, {(20, 1), (21, 1)}
    assert unconnected(frozenset(moving | still), frozenset({(4, 5)})) == still
    assert unconnected(frozenset(moving), frozenset()) == moving
