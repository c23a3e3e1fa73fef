"""Sound, video and HEIC pictures made by the programs that make them, and their facts as ffprobe reports them."""

import io
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.road import LOCAL, Road

pytestmark = pytest.mark.anyio
_VIDEO = ["-f", "lavfi", "-i", "testsrc=size=320x180:rate=10:duration=2"]
_SOUND = ["-f", "lavfi", "-i", "sine=frequency=440:duration=2"]
_BOTH = [*_VIDEO, *_SOUND, "-shortest"]
_MPEG4 = ["-c:v", "mpeg4", "-c:a", "aac"]

VIDEOS = {
    "clip.mp4": [*_BOTH, *_MPEG4],
    "fast.mp4": [*_BOTH, *_MPEG4, "-movflags", "+faststart"],
    "fragments.mp4": [*_BOTH, *_MPEG4, "-movflags", "+frag_keyframe+empty_moov"],
    "clip.mov": [*_BOTH, *_MPEG4],
    "clip.mkv": [*_BOTH, *_MPEG4],
    "live.mkv": [*_BOTH, *_MPEG4, "-live", "1"],
    "clip.webm": [*_BOTH, "-c:v", "libvpx", "-c:a", "libvorbis"],
    "clip.avi": [*_BOTH, "-c:v", "mpeg4", "-c:a", "libmp3lame"],
}
UNSTATED = ("fragments.mp4", "live.mkv")
"""Made to be sent while they are written: their headers have no duration."""
SOUNDS = {
    "sound.m4a": [*_SOUND, "-c:a", "aac"],
    "sound.mka": [*_SOUND, "-c:a", "libvorbis"],
    "sound.mp3": [*_SOUND, "-c:a", "libmp3lame", "-metadata", "title=A note"],
    "sound.ogg": [*_SOUND, "-c:a", "libvorbis"],
    "sound.opus": [*_SOUND, "-c:a", "libopus"],
    "sound.flac": [*_SOUND],
    "sound.aiff": [*_SOUND],
    "sound.wav": [*_SOUND],
}


def made(place: Path, arguments: list[str]) -> dict[str, Any]:
    """Make the file with ffmpeg; what ffprobe reports of it."""
    for program in ("ffmpeg", "ffprobe"):
        if shutil.which(program) is None:
            pytest.skip(f"not installed: {program} (Debian: ffmpeg)")
    command = ["ffmpeg", "-v", "error", "-y", *arguments, str(place)]
    subprocess.run(command, check=True, timeout=120, stdin=subprocess.DEVNULL)
    probe = ["ffprobe", "-v", "error", "-of", "json", "-show_format", "-show_streams", str(place)]
    found: dict[str, Any] = json.loads(subprocess.run(probe, check=True, timeout=60, capture_output=True).stdout)
    return found


def facts_of(content: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in content.splitlines())


@pytest.mark.parametrize("name", [*VIDEOS, *SOUNDS])
async def test_the_facts_of_sound_and_video_are_those_of_ffprobe(road: Road, name: str) -> None:
    probed = made(road.root / name, (VIDEOS | SOUNDS)[name])
    answer = await road.data("file.read", name)
    facts = facts_of(answer["content"])
    assert answer["document"]["kind"] == ("video" if name in VIDEOS else "sound")
    if name in UNSTATED:
        assert "duration" not in facts
    else:
        assert abs(float(facts["duration"].removesuffix(" s")) - float(probed["format"]["duration"])) < 0.15
    if name in VIDEOS:
        assert facts["size"] == "320 x 180"
        assert len(facts["codecs"].split(", ")) == len(probed["streams"]) == 2
    if name == "sound.mp3":
        assert facts["title"] == "A note"


@pytest.mark.parametrize("name", ["clip.mp4", "clip.mkv", "clip.avi"])
async def test_a_cut_or_garbled_video_costs_an_error_or_fewer_facts(road: Road, name: str) -> None:
    made(road.root / name, VIDEOS[name])
    whole = (road.root / name).read_bytes()
    for content in (whole[:40], whole[: len(whole) // 2], whole[:64] + b"\xff" * 4096, whole.replace(b"\0", b"\xff")):
        (road.root / name).write_bytes(content)
        answer = await road.call("file.read", name)
        assert answer["ok"] or answer["error"]["code"] in ("execution_failed", "invalid_request"), answer
    (road.root / name).write_bytes(whole)
    assert "320 x 180" in (await road.data("file.read", name))["content"]


async def test_a_heic_picture_is_shown_where_its_library_is_installed(road: Road) -> None:
    heif = pytest.importorskip("pillow_heif", reason="not installed: pillow-heif (extra: heic)")
    image = pytest.importorskip("PIL.Image")
    out = io.BytesIO()
    heif.from_pillow(image.new("RGB", (2000, 1000), "red")).save(out, quality=60)
    (road.root / "a.heic").write_bytes(out.getvalue())
    call = {"scope": "app", "op": "file.read", "target": "a.heic", "options": {"encoding": "image"}}
    reply = await road.app.dispatcher.call_wire(call, LOCAL)
    assert reply.envelope["ok"], reply.envelope
    (shown,) = reply.attachments
    picture = image.open(io.BytesIO(shown.data)).convert("RGB")
    red, green, blue = picture.getpixel((700, 300))
    assert picture.size == (1568, 784) and red > 200 and green < 60 and blue < 60
    assert (await road.data("file.read", "a.heic", options={"encoding": "image"}))["document"]["kind"] == "HEIF picture"
