"""The columns of the view: whole where there is room, and never wider than the screen."""

import pytest
from rich.text import Text

from computer_linker.watch.tables import COLUMNS, VIEWS, Row, View, widths


def rows(view: View, *sizes: int) -> list[Row]:
    return [Row("one", tuple(Text("x" * size) for size in sizes)), Row("two", tuple(Text("x") for _ in COLUMNS[view]))]


def test_what_fits_is_not_cut() -> None:
    assert widths("listening", 120, rows("listening", 6, 27, 45, 20)) == [6, 27, 45, 20]
    assert widths("calls", 90, rows("calls", 8, 19, 4, 20, 20, 4)) == [8, 19, 5, 20, 20, 4]


def test_a_cut_column_gets_the_room_that_another_leaves() -> None:
    time, who, scope, what, outcome, took = widths("calls", 100, rows("calls", 8, 60, 4, 30, 10, 4))
    assert (time, scope, what, outcome, took) == (8, 5, 30, 10, 4)
    assert who == 100 - 6 - (8 + 5 + 30 + 10 + 4) > 24


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("total", [60, 79, 80, 99, 100, 119, 200])
def test_rows_are_no_wider_than_the_screen(view: View, total: int) -> None:
    for size in (1, 10, 30, 300):
        made = widths(view, total, rows(view, *(size for _ in COLUMNS[view])))
        assert sum(made) + len(made) <= total, (view, total, size, made)
        assert min(made) >= 1
