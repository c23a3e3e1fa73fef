"""The clipboard facet's promises."""

import pytest

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.clipboard import Clip, text_clip
from computer_linker.errors import LimitExceeded

pytestmark = pytest.mark.anyio
UNICODE = "Zoë 你好 мир 😀 €ß שלום\n\ttab"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 10


async def test_text_comes_back_exactly(computer: Computer) -> None:
    await computer.clipboard_set_text(UNICODE)
    assert await computer.clipboard_text() == UNICODE
    assert "text/plain" in await computer.clipboard.types()


async def test_a_picture_comes_back_exactly(computer: Computer) -> None:
    await computer.clipboard.write(Clip({"image/png": PNG}))
    assert await computer.clipboard.read("image/png") == PNG
    assert await computer.clipboard_text() is None


async def test_a_large_text_comes_back_exactly(computer: Computer) -> None:
    large = "line of text 0123456789 é\n" * 60_000
    await computer.clipboard_set_text(large)
    assert await computer.clipboard_text() == large


async def test_more_than_was_asked_for_is_refused(computer: Computer) -> None:
    await computer.clipboard_set_text("x" * 5000)
    with pytest.raises(LimitExceeded):
        await computer.clipboard.read(max_bytes=4999)


async def test_a_snapshot_can_be_given_back(computer: Computer) -> None:
    await computer.clipboard.write(Clip({"text/plain": b"kept", "image/png": PNG}))
    kept = await computer.clipboard.snapshot()
    await computer.clipboard_set_text("something else")
    await computer.clipboard.write(kept)
    assert await computer.clipboard_text() == "kept"
    assert await computer.clipboard.read("image/png") == PNG


async def test_an_empty_clip_empties_it(computer: Computer) -> None:
    await computer.clipboard.write(text_clip("secret"))
    await computer.clipboard.write(Clip({}))
    assert (await computer.clipboard.types(), await computer.clipboard_text()) == ([], None)
