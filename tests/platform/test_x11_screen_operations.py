"""The screen operations on a real X11 desktop: what a client gets, and what never leaves."""

import base64
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from computer_linker.computer.base import Computer
from computer_linker.errors import StaleReference
from computer_linker.model.geometry import Point, Rect
from computer_linker.providers.shots import Frames
from support.desktop import Desktop
from support.harness import Harness
from support.road import LOCAL, Road, computer_scope

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]

BLUE, RED, GREY = (0x33, 0x66, 0x99), (0x99, 0x22, 0x11), (0x60, 0x60, 0x60)


@pytest.fixture
async def road(tmp_path: Path, computer: Computer) -> AsyncIterator[Road]:
    scopes = [
        computer_scope("desk"),
        computer_scope("private", excludedApplications=["harness"]),
        computer_scope("windows-only", allowDisplays=False, allowProcesses=False),
        computer_scope("displays-only", allowWindows=False),
        {"id": "blind", "type": "computer", "capabilities": ["desktop:observe"]},
    ]
    async with Road.open(tmp_path, scopes, computer) as opened:
        yield opened


async def image_of(
    road: Road, op: str, target: Any, scope: str = "desk", **options: Any
) -> tuple[dict[str, Any], Image.Image]:
    data = await road.data(op, target, scope=scope, options={"return": "base64", **options})
    return data, Image.open(io.BytesIO(base64.b64decode(data["bytesBase64"]))).convert("RGB")


async def test_the_list_names_displays_and_windows_with_their_process(road: Road, harness: Harness) -> None:
    data = await road.data("screen.list", scope="desk")
    assert data["permission"] == {"status": "granted", "detail": None}
    assert [(one["primary"], one["width"], one["height"]) for one in data["displays"]] == [(True, 1280, 800)]
    (window,) = [one for one in data["windows"] if one["id"] == harness.window]
    assert (window["title"], window["app"], window["processId"]) == ("Harness", "Harness", harness.process.pid)
    assert window["processName"].startswith("python")


async def test_a_title_full_of_escapes_is_capped_and_made_visible(road: Road, desktop: Desktop) -> None:
    nasty = Harness.open(desktop, "\x1b]0;x\x07\u202egnp" + "A" * 100_000)
    try:
        data = await road.data("screen.list", scope="desk")
        (title,) = [one["title"] for one in data["windows"] if one["id"] == nasty.window]
        assert len(title) <= 200
        assert title.startswith("\\u001b]0;x\\u0007\\u202egnpAAA")
    finally:
        desktop.end(nasty.process)


async def test_a_capture_shows_what_is_on_the_screen(road: Road, harness: Harness) -> None:
    data, image = await image_of(road, "screen.capture", "primary")
    assert (data["width"], data["height"], data["scale"]) == (1280, 800, 1.0) == (*image.size, 1.0)
    assert image.getpixel((300, 300)) == BLUE


@pytest.mark.parametrize("form", ["png", "jpeg", "webp"])
async def test_every_format_is_what_it_says(road: Road, harness: Harness, form: str) -> None:
    data = await road.data("screen.capture", "primary", scope="desk", options={"return": "base64", "format": form})
    image = Image.open(io.BytesIO(base64.b64decode(data["bytesBase64"])))
    assert (data["format"], image.format) == (form, form.upper())


async def test_the_image_block_travels_beside_the_envelope(road: Road) -> None:
    reply = await road.app.dispatcher.call_wire({"scope": "desk", "op": "screen.capture"}, LOCAL)
    (attachment,) = reply.attachments
    assert attachment.mime == "image/png"
    assert Image.open(io.BytesIO(attachment.data)).size == (1280, 800)


async def test_a_giant_size_asked_for_never_scales_up(road: Road) -> None:
    data, image = await image_of(road, "screen.capture", "primary", maxWidth=10**9, maxHeight=10**9)
    assert image.size == (1280, 800) == (data["width"], data["height"])


async def test_a_region_is_cut_out_and_its_frame_maps_back_to_the_desktop(road: Road, harness: Harness) -> None:
    region = {"x": 120, "y": 150, "width": 100, "height": 80}
    data, image = await image_of(road, "screen.capture", "primary", region=region, maxWidth=50)
    assert image.size == (50, 40)
    assert image.getpixel((25, 20)) == BLUE
    frames = road.app.services.use(Frames)
    place = await frames.locate(data["frameId"], Point(x=25, y=20), scope="desk", computer=road.app.computer)
    assert (place.x, place.y) == (170.5, 190.5)


async def test_a_region_outside_is_refused(road: Road) -> None:
    region = {"x": 5000, "y": 5000, "width": 10, "height": 10}
    assert await road.code("screen.capture", "primary", scope="desk", options={"region": region}) == "invalid_request"


async def test_a_covered_window_is_captured_whole(road: Road, harness: Harness, desktop: Desktop) -> None:
    cover = Harness.open(desktop, "Cover", at=(50, 50), size=(600, 500), colour=0x992211)
    try:
        _, screen = await image_of(road, "screen.capture", "primary")
        assert screen.getpixel((300, 300)) == RED
        data, image = await image_of(road, "screen.capture_window", harness.window)
        assert data["source"] == {"type": "window", "id": harness.window}
        assert image.size == (400, 300)
        assert {image.getpixel((x, y)) for x in (0, 200, 399) for y in (0, 150, 299)} == {BLUE}
    finally:
        desktop.end(cover.process)


async def test_a_process_is_captured_by_id_and_by_name(road: Road, harness: Harness) -> None:
    for target in (str(harness.process.pid), "harness"):
        data, image = await image_of(road, "screen.capture_process", target)
        assert data["source"]["id"] == harness.window
        assert image.getpixel((10, 10)) == BLUE
    assert await road.code("screen.capture_process", "no-such-program", scope="desk") == "process_not_found"


async def test_an_excluded_application_is_painted_over_and_cannot_be_captured(road: Road, harness: Harness) -> None:
    _, image = await image_of(road, "screen.capture", "primary", scope="private")
    assert BLUE not in {colour for _, colour in image.getcolors(1_000_000) or []}
    assert image.getpixel((300, 300)) == GREY
    assert await road.code("screen.capture_window", harness.window, scope="private") == "permission_denied"
    assert await road.code("screen.capture_process", str(harness.process.pid), scope="private") == "permission_denied"
    listed = await road.data("window.list", scope="private")
    assert harness.window not in [one["id"] for one in listed["windows"]]
    assert await road.code("window.focus", harness.window, scope="private") == "permission_denied"


async def test_what_the_scope_does_not_allow_is_refused(road: Road, harness: Harness) -> None:
    assert await road.code("screen.capture", "primary", scope="windows-only") == "permission_denied"
    assert await road.code("screen.capture_process", "harness", scope="windows-only") == "permission_denied"
    assert await road.code("screen.capture_window", harness.window, scope="displays-only") == "permission_denied"
    assert await road.code("screen.capture", "primary", scope="blind") == "permission_denied"


async def test_a_file_reference_is_a_private_file_the_service_chose(road: Road, tmp_path: Path) -> None:
    outside = tmp_path / "s.png"
    wish = {"return": "fileRef", "path": str(outside)}
    assert await road.code("screen.capture", "primary", scope="desk", options=wish) == "invalid_request"
    assert not outside.exists()
    data = await road.data("screen.capture", "primary", scope="desk", options={"return": "fileRef"})
    path = Path(data["fileRef"])
    assert path.parent == road.home / "captures"
    assert path.stat().st_mode & 0o777 == 0o600
    assert Image.open(io.BytesIO(path.read_bytes())).size == (1280, 800)


async def test_the_history_knows_sizes_and_no_pixels(road: Road) -> None:
    data = await road.data("screen.capture", "primary", scope="desk", options={"return": "base64"})
    stored = b"".join(path.read_bytes() for path in road.home.rglob("*") if path.is_file())
    assert data["bytesBase64"][:200].encode() not in stored
    assert base64.b64decode(data["bytesBase64"])[100:300] not in stored


async def test_a_point_in_a_frame_is_refused_once_its_window_moved(road: Road, harness: Harness) -> None:
    data = await road.data("screen.capture", "primary", scope="desk")
    frames, computer = road.app.services.use(Frames), road.app.computer
    here = Point(x=300, y=300)
    assert await frames.locate(data["frameId"], here, scope="desk", computer=computer) == here
    await computer.windows.place(harness.window, Rect(x=140, y=160, width=400, height=300))
    with pytest.raises(StaleReference):
        await frames.locate(data["frameId"], here, scope="desk", computer=computer)


async def test_a_point_in_a_frame_is_refused_once_another_window_covers_it(
    road: Road, harness: Harness, desktop: Desktop
) -> None:
    data = await road.data("screen.capture", "primary", scope="desk")
    cover = Harness.open(desktop, "Cover", at=(200, 200), size=(300, 300))
    try:
        with pytest.raises(StaleReference):
            await road.app.services.use(Frames).locate(
                data["frameId"], Point(x=300, y=300), scope="desk", computer=road.app.computer
            )
    finally:
        desktop.end(cover.process)


async def test_a_frame_is_known_only_to_its_own_scope(road: Road) -> None:
    data = await road.data("screen.capture", "primary", scope="desk")
    with pytest.raises(StaleReference):
        road.app.services.use(Frames).find(data["frameId"], scope="private")
