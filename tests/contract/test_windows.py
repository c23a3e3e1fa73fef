"""The windows facet's promises."""

import pytest

from computer_linker.computer.base import Computer
from computer_linker.errors import LinkError
from computer_linker.model.geometry import Point, Rect
from support.scene import Scene

pytestmark = pytest.mark.anyio
PLACE, OTHER = Rect(x=200, y=150, width=400, height=300), Rect(x=400, y=250, width=400, height=300)


async def test_the_newest_window_is_listed_first_and_has_the_focus(scene: Scene) -> None:
    first, second = scene.window("First", PLACE), scene.window("Second", OTHER)
    listed = await scene.computer.windows.list()
    assert [window.id for window in listed] == [second.id, first.id]
    assert [window.title for window in listed] == ["Second", "First"]
    focused = await scene.computer.windows.focused()
    assert focused is not None
    assert focused.id == second.id


async def test_focusing_brings_a_window_to_the_front(scene: Scene) -> None:
    first, second = scene.window("First", PLACE), scene.window("Second", OTHER)
    assert (await scene.computer.windows.focus(first.id)).is_focused
    assert [window.id for window in await scene.computer.windows.list()] == [first.id, second.id]


async def test_the_topmost_window_at_a_point_is_found(scene: Scene) -> None:
    first, second = scene.window("First", PLACE), scene.window("Second", OTHER)
    at = scene.computer.windows.at
    found = [await at(Point(x=250, y=200)), await at(Point(x=500, y=400)), await at(Point(x=1200, y=780))]
    assert [one and one.id for one in found] == [first.id, second.id, None]


async def test_placing_a_window_says_where_it_came_to_lie(scene: Scene) -> None:
    target = scene.window("Target", PLACE)
    wanted = Rect(x=300, y=320, width=310, height=222)
    assert (await scene.computer.windows.place(target.id, wanted)).bounds == wanted
    (listed,) = await scene.computer.windows.list()
    assert listed.bounds == wanted


async def test_a_closed_window_is_gone(scene: Scene) -> None:
    target = scene.window("Target", PLACE)
    assert await scene.computer.windows.close(target.id)
    assert await scene.computer.windows.list() == []


@pytest.mark.parametrize("window_id", ["0x1fffff0", "nonsense", ""])
async def test_a_window_that_is_not_there_cannot_be_acted_on(computer: Computer, window_id: str) -> None:
    for act in (
        computer.windows.focus(window_id),
        computer.windows.close(window_id),
        computer.windows.place(window_id, PLACE),
    ):
        with pytest.raises(LinkError) as caught:
            await act
        assert caught.value.code in ("not_found", "invalid_request")
