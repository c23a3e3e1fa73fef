"""The keyboard facet's promises, judged by the window that has the focus."""

import pytest

from computer_linker.computer.base import Computer
from computer_linker.errors import InvalidRequest, UnsupportedPlatform
from computer_linker.model.geometry import Rect
from support.scene import Scene, SwayScene

pytestmark = pytest.mark.anyio
PLACE = Rect(x=200, y=150, width=400, height=300)
EVERYTHING = "".join(chr(number) for number in range(0x20, 0x7F))


async def test_every_ascii_character_arrives_as_it_is(scene: Scene) -> None:
    target = scene.window("Target", PLACE)
    await scene.computer.keyboard.type_text(EVERYTHING)
    assert target.typed(EVERYTHING) == EVERYTHING


async def test_a_line_break_is_the_enter_key(scene: Scene) -> None:
    target = scene.window("Target", PLACE)
    await scene.computer.keyboard.type_text("a\nb")
    assert target.typed("a\nb") == "a\nb"


@pytest.mark.parametrize("text", ["你好", "😀", "a\tb", "Ω", "\x1b"])
async def test_what_the_layout_lacks_is_refused_and_nothing_arrives(scene: Scene, text: str) -> None:
    target = scene.window("Target", PLACE)
    if await scene.computer.keyboard.can_type("x" + text):
        # This keyboard lacks nothing of it.
        await scene.computer.keyboard.type_text("x" + text)
        assert target.typed("x" + text) == "x" + text
        return
    if isinstance(scene, SwayScene) and text.isprintable():
        pytest.skip("can be typed here, but not so that every application takes it whole")
    with pytest.raises(UnsupportedPlatform):
        await scene.computer.keyboard.type_text("x" + text)
    await scene.computer.keyboard.type_text("ok")
    assert target.typed("ok") == "ok"


@pytest.mark.parametrize("key", ["", "nokey", "ctrl+v", "f25", "\x00"])
async def test_a_name_that_is_no_key_is_refused(computer: Computer, key: str) -> None:
    with pytest.raises(InvalidRequest):
        await computer.keyboard.press([key])
