"""screen.record: bounded, masked, ended with the service; a video with ffmpeg and frames without, always a contact sheet."""

import base64
import io
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from PIL import Image

from computer_linker.artifacts.broker import ArtifactBroker
from computer_linker.computer.simulated import SimulatedComputer
from computer_linker.model.geometry import Rect
from computer_linker.providers.recording.recorder import Recordings
from support.pages import left_running
from support.road import Road, computer_scope

pytestmark = pytest.mark.anyio

RED = 0x991122


@pytest.fixture
def desk() -> SimulatedComputer:
    made = SimulatedComputer()
    made.world.open("Vault", "Secrets", Rect(x=0, y=0, width=400, height=300), colour=RED)
    return made


@pytest.fixture
async def road(tmp_path: Path, desk: SimulatedComputer) -> AsyncIterator[Road]:
    scopes = [
        computer_scope("desk"),
        computer_scope("private", excludedApplications=["vault"]),
        computer_scope("none", allowDisplays=False),
    ]
    async with Road.open(tmp_path, scopes, desk) as opened:
        yield opened


def without_ffmpeg(road: Road, desk: SimulatedComputer) -> None:
    broker = road.app.services.use(ArtifactBroker)
    road.app.services.provide(Recordings, Recordings(desk, broker, road.home / "recordings", lambda _: None))


async def test_a_video_and_a_contact_sheet_are_kept(road: Road) -> None:
    if shutil.which("ffmpeg") is None:
        pytest.skip("ffmpeg is not installed")
    options = {"maxSeconds": 1.2, "fps": 5}
    started = await road.call("screen.record", "start", scope="desk", input={"owner": "issue-3"}, options=options)
    assert (started["ok"], started["effect"], started["data"]["status"]) == (True, "confirmed", "recording"), started
    assert await road.code("screen.record", "start", scope="desk") == "conflict"
    made = road.app.services.use(Recordings)._all[("desk", "local:tester")]
    with anyio.fail_after(30):
        await made.done.wait()
    stopped = await road.data("screen.record", "stop", scope="desk")
    assert (stopped["method"], stopped["endedBy"]) == ("video", "time")
    assert [(one["kind"], one["mediaType"]) for one in stopped["artifacts"]] == [
        ("video_recording", "video/webm"),
        ("screenshot", "image/png"),
    ]
    assert {one["owner"]["label"] for one in stopped["artifacts"]} == {"issue-3"}
    assert 0.5 < await _length(road, stopped["artifacts"][0]["id"]) < 3
    assert await road.code("screen.record", "stop", scope="desk") == "not_found"
    assert not list((road.home / "recordings").iterdir())


async def test_without_ffmpeg_the_frames_themselves_are_kept(road: Road, desk: SimulatedComputer) -> None:
    without_ffmpeg(road, desk)
    await road.data("screen.record", "start", scope="desk", options={"fps": 10})
    stopped = await road.data("screen.record", "stop", scope="desk")
    assert (stopped["method"], stopped["endedBy"]) == ("frames", "asked")
    types = [one["mediaType"] for one in stopped["artifacts"]]
    assert types[0] == "image/png"
    assert set(types[1:]) == {"image/jpeg"}
    assert 1 <= len(types) - 1 <= 24


async def test_what_the_scope_excludes_is_in_no_frame(road: Road, desk: SimulatedComputer) -> None:
    without_ffmpeg(road, desk)
    for scope, sees in (("desk", True), ("private", False)):
        await road.data("screen.record", "start", scope=scope)
        stopped = await road.data("screen.record", "stop", scope=scope)
        assert (stopped["hiddenAreas"] > 0) is not sees
        for artifact in stopped["artifacts"]:
            reds = _reds(await _bytes(road, artifact["id"], scope))
            assert bool(reds) is sees, artifact["title"]


async def test_it_ends_with_the_service_and_leaves_nothing_running(tmp_path: Path, desk: SimulatedComputer) -> None:
    async with Road.open(tmp_path, [computer_scope("desk")], desk) as road:
        await road.data("screen.record", "start", scope="desk")
    assert left_running(road.home) == []
    assert not [path for path in (road.home / "recordings").glob("*") if path.is_file()]
    async with Road.open(tmp_path, [computer_scope("desk")], desk) as again:
        kinds = {one["kind"] for one in (await again.data("artifact.list", scope="desk"))["artifacts"]}
        assert "screenshot" in kinds


@pytest.mark.parametrize(
    ("scope", "target", "parts", "code"),
    [
        ("none", "start", {}, "permission_denied"),
        ("desk", "pause", {}, "invalid_request"),
        ("desk", "start", {"options": {"maxSeconds": 3600}}, "invalid_request"),
        ("desk", "start", {"options": {"fps": 60}}, "invalid_request"),
        ("desk", "start", {"input": {"display": "nine"}}, "not_found"),
        ("desk", "stop", {}, "not_found"),
    ],
)
async def test_what_is_refused_records_nothing(
    road: Road, scope: str, target: str, parts: dict[str, Any], code: str
) -> None:
    assert await road.code("screen.record", target, scope=scope, **parts) == code
    assert (await road.data("artifact.list", scope="desk"))["artifacts"] == []
    assert not road.app.services.use(Recordings).is_busy()


async def _bytes(road: Road, artifact_id: str, scope: str = "desk") -> bytes:
    read = await road.data(
        "artifact.read", artifact_id, scope=scope, options={"return": "base64", "maxBytes": 4_000_000}
    )
    return base64.b64decode(read["bytesBase64"])


def _reds(picture: bytes) -> int:
    pixels = Image.open(io.BytesIO(picture)).convert("RGB").tobytes()
    colours = zip(pixels[::3], pixels[1::3], pixels[2::3], strict=True)
    return sum(1 for red, green, blue in colours if red > 120 and green < 60 and blue < 70)


async def _length(road: Road, artifact_id: str) -> float:
    path = road.home / "look.webm"
    path.write_bytes(await _bytes(road, artifact_id))
    argv = ["ffprobe", "-v", "error", "-of", "json", "-show_format", str(path)]
    told = subprocess.run(argv, capture_output=True, timeout=30, check=True)
    return float(json.loads(told.stdout)["format"]["duration"])


async def test_a_capture_is_kept_masked_like_any_other(tmp_path: Path, desk: SimulatedComputer) -> None:
    scopes = [
        computer_scope("desk"),
        computer_scope("private", excludedApplications=["vault"]),
        computer_scope("others-only", allowLocalFallback=False),
    ]
    async with Road.open(tmp_path, scopes, desk) as road:
        for scope, sees in (("desk", True), ("private", False)):
            kept = (await road.data("artifact.capture", scope=scope, input={"owner": "pr-1"}))["artifact"]
            assert (kept["kind"], kept["owner"]["backend"], kept["owner"]["label"]) == ("screenshot", "local", "pr-1")
            assert bool(_reds(await _bytes(road, kept["id"], scope))) is sees
        assert await road.code("artifact.capture", scope="others-only") == "permission_denied"
        assert await road.code("artifact.capture", "nine", scope="desk") == "not_found"
        assert len((await road.data("artifact.list", scope="desk"))["artifacts"]) == 1
        assert (await road.data("artifact.list", scope="others-only"))["artifacts"] == []
