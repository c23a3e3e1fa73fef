"""The screen facet's promises."""

import anyio
import anyio.abc
import pytest

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.screen import Pixmap
from computer_linker.errors import InvalidRequest, LinkError, UnsupportedPlatform
from computer_linker.model.geometry import Rect
from support.scene import Scene, SwayScene
from support.waiting import until_awaited

pytestmark = pytest.mark.anyio


def colour_at(pixmap: Pixmap, x: int, y: int) -> int:
    """The colour at a desktop place."""
    at = (y - pixmap.area.y) * pixmap.stride + (x - pixmap.area.x) * 4
    return int.from_bytes(pixmap.data[at : at + 3], "little")


async def drawn(scene: Scene) -> Pixmap:
    """The whole desktop, once both windows have drawn themselves."""

    async def both() -> Pixmap | None:
        pixmap = await scene.computer.screen.capture()
        is_drawn = colour_at(pixmap, 450, 280) == 0x998877 and colour_at(pixmap, 200, 180) == 0x112233
        return pixmap if is_drawn else None

    pixmap = await until_awaited(both)
    assert pixmap is not None
    return pixmap


async def test_there_is_one_primary_display_and_it_comes_first(computer: Computer) -> None:
    displays = await computer.screen.displays()
    assert [display.is_primary for display in displays] == [True]
    assert displays[0].bounds == Rect(x=0, y=0, width=1280, height=800)


async def test_a_capture_shows_the_windows_where_they_are(scene: Scene) -> None:
    scene.window("Under", Rect(x=100, y=100, width=300, height=200), 0x112233)
    scene.window("Over", Rect(x=300, y=200, width=300, height=200), 0x998877)
    pixmap = await drawn(scene)
    assert pixmap.area == Rect(x=0, y=0, width=1280, height=800)
    assert len(pixmap.data) == pixmap.stride * pixmap.height
    assert (colour_at(pixmap, 200, 180), colour_at(pixmap, 450, 280)) == (0x112233, 0x998877)


async def test_an_area_is_cut_to_the_desktop(scene: Scene) -> None:
    pixmap = await scene.computer.screen.capture(Rect(x=1200, y=700, width=500, height=500))
    assert pixmap.area == Rect(x=1200, y=700, width=80, height=100)
    assert (pixmap.width, pixmap.height) == (80, 100)


async def test_an_area_off_the_desktop_is_refused(computer: Computer) -> None:
    with pytest.raises(InvalidRequest):
        await computer.screen.capture(Rect(x=5000, y=0, width=10, height=10))


async def test_a_window_is_captured_also_where_it_is_covered(scene: Scene) -> None:
    under = scene.window("Under", Rect(x=100, y=100, width=300, height=200), 0x112233)
    scene.window("Over", Rect(x=90, y=90, width=400, height=300), 0x998877)
    if isinstance(scene, SwayScene):
        # What is not on the screen cannot be had there, and that is said.
        with pytest.raises(UnsupportedPlatform):
            await scene.computer.screen.capture_window(under.id)
        return
    pixmap = await scene.computer.screen.capture_window(under.id)
    assert (pixmap.width, pixmap.height) == (300, 200)
    assert set(pixmap.data[0::4]) == {0x33}
    assert set(pixmap.data[1::4]) == {0x22}


@pytest.mark.parametrize("window_id", ["0x1fffff0", "nonsense", ""])
async def test_a_window_that_is_not_there_cannot_be_captured(computer: Computer, window_id: str) -> None:
    with pytest.raises(LinkError) as caught:
        await computer.screen.capture_window(window_id)
    assert caught.value.code in ("not_found", "invalid_request")


async def test_the_cursor_is_drawn_only_when_asked_for(scene: Scene) -> None:
    if isinstance(scene, SwayScene):
        pytest.skip("a compositor without a graphics card paints the cursor into every picture")
    from computer_linker.model.geometry import Point

    scene.window("Plain", Rect(x=100, y=100, width=400, height=300), 0x112233)
    await scene.computer.pointer.move(Point(x=300, y=250))
    area = Rect(x=290, y=240, width=40, height=40)
    plain = await scene.computer.screen.capture(area)
    drawn = await scene.computer.screen.capture(area, cursor=True)
    assert set(plain.data[0::4]) == {0x33}
    assert len(set(drawn.data[0::4])) > 1


async def test_changes_are_told_with_their_area(scene: Scene) -> None:
    seen: list[Rect] = []
    if isinstance(scene, SwayScene):
        with pytest.raises(UnsupportedPlatform):
            scene.computer.screen.changes()
        return

    async def watch(*, task_status: anyio.abc.TaskStatus[None]) -> None:
        changes = scene.computer.screen.changes()
        waiting = changes.__aiter__()
        task_status.started()
        async for areas in waiting:
            seen.extend(areas)
            if any(area.intersection(Rect(x=150, y=150, width=100, height=100)).width for area in seen):
                return

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            await group.start(watch)
            while not seen:
                # The subscription is made in the background: keep changing until the first change is told.
                target = scene.window("New", Rect(x=100, y=100, width=300, height=200))
                await anyio.sleep(0.05)  # the window is drawn once before it moves
                await scene.computer.windows.place(target.id, Rect(x=120, y=120, width=300, height=200))
