"""Reading the screen: OCR, marks and hidden passwords, on a real X11 desktop with GTK applications."""

import base64
import io
import shutil
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import pytest
from PIL import Image, ImageDraw, ImageFont

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.screen import Pixmap
from computer_linker.model.geometry import Point, Rect
from computer_linker.providers.ocr import RapidEngine, TesseractEngine
from computer_linker.providers.shots import Frames
from support.desktop import Desktop, missing
from support.road import Road, computer_scope
from support.scene import until_no_windows
from support.waiting import until_awaited

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]
SENTENCE = "The quick brown fox jumps over 1234 lazy dogs"


@pytest.fixture
async def road(tmp_path: Path, computer: Computer, desktop: Desktop) -> AsyncIterator[Road]:
    if lacking := missing("zenity"):
        pytest.skip(f"not installed: {lacking}")
    scopes = [
        computer_scope("desk"),
        {"id": "eyes", "type": "computer", "capabilities": ["screen:capture"]},
    ]
    async with Road.open(tmp_path, scopes, computer) as opened:
        yield opened
    for process in list(desktop.processes):
        desktop.end(process)
    await until_no_windows(computer)


async def shown(computer: Computer, title: str) -> str:
    """The id of a window with this title, once it is there and drawn."""

    async def drawn() -> str:
        for window in await computer.windows.list():
            if window.title == title and len(set((await computer.screen.capture(window.bounds)).data)) > 8:
                return window.id
        return ""

    return await until_awaited(drawn)


def image_in(data: dict[str, Any]) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(data["bytesBase64"]))).convert("RGB")


@pytest.mark.skipif(find_spec("rapidocr") is None, reason="not installed: rapidocr")
async def test_text_on_the_screen_is_read_with_its_place(road: Road, computer: Computer, desktop: Desktop) -> None:
    desktop.launch("zenity", "--info", "--title=Reading", f"--text={SENTENCE}", "--no-wrap")
    window = await shown(computer, "Reading")
    data = await road.data("screen.ocr", window, scope="desk")
    assert SENTENCE in data["text"]
    assert data["engine"] == "rapidocr"
    (ok,) = [line for line in data["lines"] if line["text"] == "OK"]
    bounds = Rect(**ok["bounds"])
    place = await road.app.services.use(Frames).locate(data["frameId"], bounds.center, scope="desk", computer=computer)
    await computer.click(place)
    await until_no_windows(computer)


async def test_the_same_pixels_are_not_read_twice(road: Road, computer: Computer, desktop: Desktop) -> None:
    if shutil.which("tesseract") is None and find_spec("rapidocr") is None:
        pytest.skip("not installed: rapidocr, tesseract-ocr")
    desktop.launch("zenity", "--info", "--title=Twice", "--text=Only once", "--no-wrap")
    window = await shown(computer, "Twice")
    first = await road.call("screen.ocr", window, scope="desk")
    again = await road.call("screen.ocr", window, scope="desk")
    assert first["data"]["lines"] == again["data"]["lines"]
    assert again["durationMs"] < max(200, first["durationMs"] / 2)


async def test_tesseract_reads_where_it_is_the_engine(computer: Computer, desktop: Desktop, road: Road) -> None:
    program = shutil.which("tesseract")
    if program is None:
        pytest.skip("not installed: tesseract-ocr")
    desktop.launch("zenity", "--info", "--title=Tess", f"--text=<big>{SENTENCE}</big>", "--no-wrap")
    pixmap = await computer.screen.capture_window(await shown(computer, "Tess"))
    lines = await anyio.to_thread.run_sync(TesseractEngine(program).read, pixmap, None)
    assert "quick brown fox" in " ".join(line.text for line in lines)
    assert all(Rect(x=0, y=0, width=pixmap.width, height=pixmap.height).contains(line.bounds.center) for line in lines)


async def test_marks_number_the_controls_and_name_them(road: Road, computer: Computer, desktop: Desktop) -> None:
    desktop.launch(
        "zenity", "--question", "--title=Marks", "--text=Go on?", "--ok-label=Certainly", "--cancel-label=Never"
    )
    window = await shown(computer, "Marks")
    options = {"marks": True, "return": "base64"}
    data = await road.data("screen.capture_window", window, scope="desk", options=options)
    plain = await road.data("screen.capture_window", window, scope="desk", options={"return": "base64"})
    names = {mark["name"]: mark for mark in data["marks"]}
    assert {"Certainly", "Never"} <= set(names)
    assert [mark["number"] for mark in data["marks"]] == list(range(1, len(data["marks"]) + 1))
    assert image_in(data).tobytes() != image_in(plain).tobytes()
    middle = Rect(**names["Certainly"]["bounds"]).center
    place = await road.app.services.use(Frames).locate(data["frameId"], middle, scope="desk", computer=computer)
    await computer.click(place)
    await until_no_windows(computer)


async def test_marks_need_the_right_to_look_at_controls(road: Road, computer: Computer, desktop: Desktop) -> None:
    desktop.launch("zenity", "--question", "--title=Refused", "--text=Go on?")
    window = await shown(computer, "Refused")
    assert (
        await road.code("screen.capture_window", window, scope="eyes", options={"marks": True}) == "permission_denied"
    )
    assert (await road.data("screen.capture_window", window, scope="eyes"))["marks"] is None


async def test_a_password_field_is_painted_over(road: Road, computer: Computer, desktop: Desktop) -> None:
    desktop.launch("zenity", "--password", "--title=Secret")
    window = await shown(computer, "Secret")
    await computer.windows.focus(window)
    with anyio.fail_after(20):
        while True:
            data = await road.data("screen.capture_window", window, scope="desk", options={"return": "base64"})
            if data["hiddenAreas"]:
                break
    image = image_in(data)
    grey = [
        (x, y)
        for x in range(0, image.width, 2)
        for y in range(0, image.height, 2)
        if image.getpixel((x, y)) == (96, 96, 96)
    ]
    assert len(grey) > 200
    await computer.keyboard.type_text("hunter2")
    after = image_in(await road.data("screen.capture_window", window, scope="desk", options={"return": "base64"}))
    box = (min(x for x, _ in grey), min(y for _, y in grey), max(x for x, _ in grey), max(y for _, y in grey))
    assert (
        after.crop(box).getcolors()
        == image.crop(box).getcolors()
        == [((box[2] - box[0]) * (box[3] - box[1]), (96, 96, 96))]
    )


@pytest.mark.skipif(find_spec("rapidocr") is None, reason="not installed: rapidocr")
def test_large_wide_spaced_digits_are_one_line() -> None:
    picture = Image.new("RGB", (1200, 300), "white")
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(96)
    across = 40.0
    for digit in "7.38":
        draw.text((across, 40), digit, font=font, fill="black")
        across += font.getlength(digit) + 24
    draw.text((40, 240), "small text below", font=ImageFont.load_default(20), fill="black")
    raw = picture.convert("RGBA").tobytes("raw", "BGRA")
    area = Rect(x=0, y=0, width=1200, height=300)
    lines = RapidEngine().read(Pixmap(1200, 300, 4800, raw, area), None)
    assert sorted(line.text for line in lines) == ["7.38", "small text below"]
    (large,) = [line.bounds for line in lines if line.text == "7.38"]
    assert large.contains(Point(x=180, y=110)) and 60 < large.height < 160
