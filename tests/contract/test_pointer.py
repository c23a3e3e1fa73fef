"""The pointer facet's promises, judged by the window that is pointed at."""

import pytest

from computer_linker.computer.base import Computer
from computer_linker.errors import InvalidRequest
from computer_linker.model.geometry import Point, Rect
from support.scene import Scene

pytestmark = pytest.mark.anyio
PLACE = Rect(x=200, y=150, width=400, height=300)


async def test_a_move_is_where_the_pointer_then_is(computer: Computer) -> None:
    await computer.pointer.move(Point(x=321, y=234))
    assert await computer.pointer.position() == Point(x=321, y=234)


@pytest.mark.parametrize("button", ["left", "middle", "right"])
async def test_a_click_reaches_the_window_at_that_place_with_that_button(scene: Scene, button: str) -> None:
    target = scene.window("Target", PLACE)
    (window,) = [one for one in await scene.computer.windows.list() if one.id == target.id]
    await scene.computer.click(Point(x=window.bounds.x + 30, y=window.bounds.y + 40), button=button)  # type: ignore[arg-type]  # one of them
    assert target.clicks(1) == [{"button": button, "x": 30, "y": 40}]


async def test_a_double_click_arrives_twice(scene: Scene) -> None:
    target = scene.window("Target", PLACE)
    await scene.computer.click(PLACE.center, count=2)
    assert [click["button"] for click in target.clicks(2)] == ["left", "left"]


@pytest.mark.parametrize("point", [Point(x=-1, y=5), Point(x=1280, y=5), Point(x=5, y=800)])
async def test_a_point_off_the_desktop_is_refused_and_the_pointer_stays(computer: Computer, point: Point) -> None:
    await computer.pointer.move(Point(x=10, y=10))
    with pytest.raises(InvalidRequest):
        await computer.click(point)
    assert await computer.pointer.position() == Point(x=10, y=10)


async def test_a_drag_ends_where_it_should(scene: Scene) -> None:
    scene.window("Target", PLACE)
    await scene.computer.drag(Point(x=300, y=250), Point(x=500, y=400))
    assert await scene.computer.pointer.position() == Point(x=500, y=400)
