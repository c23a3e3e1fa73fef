"""Artifacts: own copies with an owner, taken only from inside the scope, bounded, never what they pretend to be."""

import os
from pathlib import Path
from typing import Any

import pytest

from computer_linker.artifacts import store
from computer_linker.artifacts.kinds import media_type, normalised_kind
from computer_linker.artifacts.manifest import parse_manifest
from computer_linker.errors import InvalidRequest
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452") + b"\0" * 40


async def test_a_file_is_kept_and_survives_its_original(road: Road) -> None:
    (road.root / "shot.png").write_bytes(PNG)
    envelope = await road.call("artifact.attach", "shot.png", input={"owner": "issue-12"})
    assert (envelope["ok"], envelope["effect"]) == (True, "confirmed")
    kept = envelope["data"]["artifact"]
    assert (kept["kind"], kept["mediaType"], kept["size"]) == ("screenshot", "image/png", len(PNG))
    assert kept["owner"] == {
        "scope": "app",
        "session": "session-1",
        "operation": envelope["operationId"],
        "label": "issue-12",
    }
    (road.root / "shot.png").unlink()
    read = await road.data("artifact.read", kept["id"], options={"return": "base64"})
    assert read["bytesBase64"].startswith("iVBORw0KGgo")
    listed = await road.data("artifact.list", input={"owner": "issue-12"})
    assert [item["id"] for item in listed["artifacts"]] == [kept["id"]]


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("report.txt", b"all well", "document"), ("notes.md", b"# Notes", "document"), ("notes", b"plain", "document"),
        ("out.log", b"ready", "console_logs"), ("console.txt", b"ready", "console_logs"), ("page.har", b"{}", "network_log"),
        ("trace.zip", b"PK\x03\x04", "browser_trace"), ("a.pdf", b"%PDF-1.7", "document"), ("shot", PNG, "screenshot"),
        ("shot.PNG", PNG, "screenshot"), ("image.txt", b"of words", "document"), ("result.json", b"{}", "evidence"),
        ("data.bin", b"\0\1\2\3", "evidence"),
    ],
)  # fmt: skip
async def test_a_file_without_a_kind_gets_the_one_that_fits_it(
    road: Road, name: str, content: bytes, kind: str
) -> None:
    (road.root / name).write_bytes(content)
    kept = (await road.data("artifact.attach", name))["artifact"]
    assert kept["kind"] == kind


async def test_who_may_not_read_a_file_may_not_keep_a_copy_of_it(tmp_path: Path) -> None:
    scope = folder_scope(tmp_path / "root") | {"capabilities": ["artifact:read", "artifact:write"]}
    async with Road.open(tmp_path, [scope]) as road:
        (road.root / "a.txt").write_text("CANARY")
        (road.root / "m.json").write_text('{"consoleLogs": "CANARY"}')
        for op, target, given in (
            ("artifact.attach", "a.txt", {}),
            ("artifact.ingest", None, {"path": "a.txt"}),
            ("artifact.ingest", None, {"manifest": {"consoleLogsPath": "a.txt"}}),
            ("artifact.ingest", "m.json", {}),
        ):
            refused = await road.call(op, target, input=given)
            assert (refused["error"]["code"], refused["error"]["details"]) == (
                "permission_denied", {"missing": ["fs:read"]},
            )  # fmt: skip
        assert (await road.data("artifact.list"))["artifacts"] == []
        assert (await road.call("artifact.attach", input={"text": "mine"}))["ok"]


async def test_equal_bytes_lie_once_and_privately(road: Road) -> None:
    for _ in range(2):
        await road.data("artifact.attach", input={"text": "the same"})
    objects = [path for path in (road.home / "artifacts" / "objects").rglob("*") if path.is_file()]
    assert len(objects) == 1
    assert objects[0].stat().st_mode & 0o777 == 0o600
    assert (road.home / "artifacts" / "objects").stat().st_mode & 0o777 == 0o700


async def test_another_scope_does_not_see_it(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    scopes = [folder_scope(tmp_path / "root"), folder_scope(tmp_path / "other", "other")]
    async with Road.open(tmp_path, scopes) as road:
        kept = (await road.data("artifact.attach", input={"text": "mine"}))["artifact"]
        assert await road.code("artifact.read", kept["id"], scope="other") == "not_found"
        assert (await road.data("artifact.list", scope="other"))["artifacts"] == []


@pytest.mark.parametrize(
    "path",
    ["../out/secret.txt", "{out}/secret.txt", "{root}_evil/secret.txt", "link", "ff", ".env", "missing", "folder"],
)
async def test_nothing_outside_special_or_secret_is_taken(road: Road, tmp_path: Path, path: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "secret.txt").write_text("CANARY")
    (road.root / "link").symlink_to(out / "secret.txt")
    (road.root / ".env").write_text("CANARY")
    (road.root / "folder").mkdir()
    os.mkfifo(road.root / "ff")
    given = path.format(out=out, root=road.root)
    for call in (
        ("artifact.ingest", None, {"kind": "console_logs", "path": given}),
        ("artifact.ingest", None, {"manifest": {"consoleLogsPath": given}}),
        ("artifact.ingest", None, {"manifest": [{"kind": "console_logs", "path": given}]}),
        ("artifact.attach", given, {"kind": "console_logs"}),
    ):
        envelope = await road.call(call[0], call[1], input=call[2])
        assert not envelope["ok"]
        assert "CANARY" not in str(envelope)
    assert (await road.data("artifact.list"))["artifacts"] == []


@pytest.mark.parametrize(
    "manifest",
    [
        {"mediaUrl": "x"}, {"screenshotPath": 5}, {"artifacts": [{"uri": "file:///etc/passwd"}]}, {}, [], "x", 5,
        {"artifacts": [{"kind": "screenshot"}]}, {"artifacts": [{"path": "a", "text": "b"}]}, {"artifacts": [{"path": "a", "evil": 1}]},
        {"artifacts": [{"text": "x"}] * 201}, {"artifacts": {"path": "a"}},
    ],
)  # fmt: skip
async def test_a_manifest_is_read_strictly(road: Road, manifest: Any) -> None:
    assert await road.code("artifact.ingest", input={"manifest": manifest}) == "invalid_request"
    assert (await road.data("artifact.list"))["artifacts"] == []


async def test_one_bad_entry_keeps_the_rest_out_too(road: Road) -> None:
    (road.root / "a.txt").write_text("a")
    manifest = {"consoleLogsPath": "a.txt", "tracePath": "missing.json"}
    assert await road.code("artifact.ingest", input={"manifest": manifest}) == "not_found"
    assert (await road.data("artifact.list"))["artifacts"] == []


async def test_both_manifest_forms_and_a_manifest_file_are_taken(road: Road) -> None:
    (road.root / "s.png").write_bytes(PNG)
    (road.root / "m.json").write_text('{"screenshotPath":"s.png","consoleLogs":"ready","verificationText":"ok"}')
    kept = await road.data("artifact.ingest", "m.json", input={"backend": "agent-browser"})
    assert [item["kind"] for item in kept["artifacts"]] == ["screenshot", "console_logs", "browser_verification"]
    entries = [{"rawType": "Screen Recording", "text": "x"}, {"title": "console", "text": "y"}, {"json": {"a": 1}}]
    kinds = [entry.kind for entry in parse_manifest(entries)]
    assert kinds == ["video_recording", "console_logs", "console_logs"]


@pytest.mark.parametrize(
    "content", [b"<html><script>alert(1)</script>", b"<svg xmlns='x'><script/></svg>", b"\x7fELF....", b"text"]
)
async def test_what_is_no_picture_is_not_kept_as_one(road: Road, content: bytes) -> None:
    (road.root / "x.png").write_bytes(content)
    assert await road.code("artifact.attach", "x.png", input={"kind": "screenshot"}) == "invalid_request"


async def test_programs_are_never_kept(road: Road) -> None:
    for content in (b"#!/bin/sh\ntrue\n", b"\x7fELF\x02", b"MZ\x90"):
        (road.root / "p").write_bytes(content)
        assert await road.code("artifact.attach", "p", input={"kind": "document"}) == "invalid_request"


async def test_markup_is_given_back_as_plain_text(road: Road) -> None:
    (road.root / "r.html").write_text("<html><script>alert(1)</script>")
    kept = (await road.data("artifact.attach", "r.html", input={"kind": "document"}))["artifact"]
    assert kept["mediaType"] == "text/plain"


async def test_a_large_file_is_refused_without_being_kept(road: Road) -> None:
    with (road.root / "big").open("wb") as file:
        file.truncate(store.MAX_BYTES + 1)
    assert await road.code("artifact.attach", "big") == "limit_exceeded"


def test_the_oldest_make_way(tmp_path: Path) -> None:
    kept = store.ArtifactStore(tmp_path, store.Bounds(scope_count=3))
    owner = store.Owner("app", "p", "s", "o")
    made = [kept.add(f"{n}".encode(), "document", "text/plain", "t", owner) for n in range(5)]
    assert kept.size_of("app")[0] == 3
    left = {item.id for item in kept.listed(store.Filter("app"), 10)}
    assert left == {item.id for item in made[2:]}
    assert len([p for p in (tmp_path / "objects").rglob("*") if p.is_file()]) == 3
    kept.close()


async def test_an_id_is_never_a_path(road: Road) -> None:
    for wrong in ("../../etc/passwd", "art_/../x", "art_" + "0" * 100, "x", ""):
        assert await road.code("artifact.read", wrong) in ("invalid_request", "not_found")


def test_kinds_are_known_by_many_names() -> None:
    assert normalised_kind("Screen Capture") == "screenshot"
    assert normalised_kind(None, "HAR") == "network_log"
    assert normalised_kind("nonsense") == "browser_verification"
    assert normalised_kind(None, has_text=True) == "console_logs"
    assert media_type(b"\0\1\2") == "application/octet-stream"
    assert media_type("é".encode() * 2048 + b"\xc3") == "text/plain"
    with pytest.raises(InvalidRequest):
        parse_manifest({"artifacts": "x"})
