"""Archives, doubled fields, wrong types and giants: a clear code, nothing unpacked, nothing copied."""

import io
import resource
import zipfile
from pathlib import Path
from typing import Any

import pytest

from support.road import Road

pytestmark = pytest.mark.anyio


def _zip(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


async def test_an_archive_is_kept_whole_and_never_unpacked(road: Road, tmp_path: Path) -> None:
    _zip(road.root / "t.zip", {"../../out/pwn": b"x", "/etc/pwn": b"x", "trace.json": b"{}"})
    kept = await road.data("artifact.ingest", input={"kind": "browser_trace", "path": "t.zip"})
    artifact = kept["artifacts"][0]
    assert (artifact["kind"], artifact["mediaType"]) == ("browser_trace", "application/zip")
    assert artifact["size"] == (road.root / "t.zip").stat().st_size
    assert not list(tmp_path.rglob("pwn"))
    read = await road.data("artifact.read", artifact["id"])
    assert read["bytesBase64"].startswith("UEsDB")


async def test_a_zip_bomb_is_not_inflated(road: Road) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("zeros", bytes(50 << 20))
    _zip(road.root / "42.zip", {f"{number}.zip": inner.getvalue() for number in range(40)})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kept = await road.data("artifact.ingest", input={"kind": "browser_trace", "path": "42.zip"})
    assert (await road.data("artifact.read", kept["artifacts"][0]["id"]))["artifact"]["size"] < 4 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


@pytest.mark.parametrize(
    "manifest",
    [
        '{"consoleLogs":"a","consoleLogs":"b"}',
        '{"artifacts":[{"text":"a","text":"b"}]}',
        '{"artifacts":[{"text":"a","kind":5}]',
        '{"consoleLogs":"a"} {"consoleLogs":"b"}',
        '{"consoleLogsPath":"file:///etc/passwd"}',
        '{"consoleLogsPath":"/etc/passwd"}',
        '{"consoleLogsPath":"a\\u0000b"}',
        '{"consoleLogs":NaN}',
        '{"consoleLogs":"\\ud800"}',
        "[" * 100_000,
        "\x00\x01",
        "",
    ],
)
async def test_a_manifest_file_is_read_strictly(road: Road, manifest: str) -> None:
    (road.root / "m.json").write_text(manifest)
    assert await road.code("artifact.ingest", "m.json") in ("invalid_request", "path_out_of_scope", "not_found")
    assert (await road.data("artifact.list"))["artifacts"] == []


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "console_logs", "text": "A" * 4_000_001},
        {"kind": "screenshot", "uri": "file:///etc/passwd"},
        {"kind": ["screenshot"], "text": "x"},
        {"path": 5},
        {"text": "x", "path": "y"},
        {"manifest": {"artifacts": [{"text": "x"}] * 100_000}},
        {},
    ],
)
async def test_wrong_input_keeps_nothing(road: Road, given: dict[str, Any]) -> None:
    assert await road.code("artifact.ingest", input=given) == "invalid_request"
    assert (await road.data("artifact.list"))["artifacts"] == []


async def test_a_giant_is_refused_before_it_is_read(road: Road) -> None:
    with (road.root / "giant.webm").open("wb") as file:
        file.truncate(10 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert await road.code("artifact.ingest", input={"path": "giant.webm"}) == "limit_exceeded"
    assert await road.code("artifact.attach", "giant.webm") == "limit_exceeded"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 << 10
    assert (await road.data("artifact.list"))["artifacts"] == []
