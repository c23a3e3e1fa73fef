"""screen.record on a real X11 desktop: the video shows what was there, and never what the scope keeps out of sight."""

import base64
import io
import shutil
import subprocess
from pathlib import Path

import anyio
import pytest
from PIL import Image

from computer_linker.computer.base import Computer
from computer_linker.providers.recording.recorder import Recordings
from support.harness import Harness
from support.road import Road, computer_scope

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]


@pytest.mark.parametrize(("scope", "sees"), [("desk", True), ("private", False)])
async def test_every_frame_of_the_video_is_masked(
    tmp_path: Path, computer: Computer, harness: Harness, scope: str, sees: bool
) -> None:
    if shutil.which("ffmpeg") is None:
        pytest.skip("ffmpeg is not installed")
    assert harness.window
    scopes = [computer_scope("desk"), computer_scope("private", excludedApplications=["harness"])]
    async with Road.open(tmp_path, scopes, computer) as road:
        await road.data("screen.record", "start", scope=scope, options={"maxSeconds": 1.5, "fps": 4})
        made = road.app.services.use(Recordings)._all[(scope, "local:tester")]
        with anyio.fail_after(60):
            await made.done.wait()
        stopped = await road.data("screen.record", "stop", scope=scope)
        assert [one["kind"] for one in stopped["artifacts"]] == ["video_recording", "screenshot"]
        video, sheet = [await _bytes(road, one["id"], scope) for one in stopped["artifacts"]]
    frames = _frames(video, tmp_path)
    assert len(frames) >= 2
    for frame in [*frames, sheet]:
        assert (_blues(frame) > 500) is sees


async def _bytes(road: Road, artifact_id: str, scope: str) -> bytes:
    options = {"return": "base64", "maxBytes": 4_000_000}
    read = await road.data("artifact.read", artifact_id, scope=scope, options=options)
    return base64.b64decode(read["bytesBase64"])


def _frames(video: bytes, folder: Path) -> list[bytes]:
    (folder / "v.webm").write_bytes(video)
    argv = ["ffmpeg", "-loglevel", "error", "-i", str(folder / "v.webm"), str(folder / "frame-%02d.png")]
    subprocess.run(argv, check=True, timeout=240, stdin=subprocess.DEVNULL)
    return [path.read_bytes() for path in sorted(folder.glob("frame-*.png"))]


def _blues(picture: bytes) -> int:
    """How many pixels have about the colour of the harness window."""
    pixels = Image.open(io.BytesIO(picture)).convert("RGB").tobytes()
    colours = zip(pixels[::3], pixels[1::3], pixels[2::3], strict=True)
    return sum(
        1 for red, green, blue in colours if abs(red - 0x33) < 20 and abs(green - 0x66) < 20 and abs(blue - 0x99) < 20
    )
