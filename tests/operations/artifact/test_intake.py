"""Artifacts from where backends leave them: what was stated is kept, and an intake root opens nothing else."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452") + b"\0" * 40


@pytest.fixture
async def taking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Road]:
    """Scope `app` may take from agent-browser's folder and from `drop`; `plain` from nowhere. `other` has a root in `drop`."""
    drop, person = tmp_path / "drop", tmp_path / "person"
    for folder in (
        drop / "other",
        drop / "sub",
        person / ".agent-browser" / "tmp",
        person / ".agent-browser" / "sessions",
    ):
        folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(person))
    scopes = [
        folder_scope(tmp_path / "root", intakeRoots=["agent-browser", str(drop)]),
        folder_scope(tmp_path / "root", "plain"),
        folder_scope(drop / "other", "other"),
    ]
    async with Road.open(tmp_path, scopes) as road:
        yield road


async def test_what_was_stated_is_kept(road: Road) -> None:
    """Point 004-009: description, mimeType and metadata are kept and answered; what the bytes are is found out."""
    (road.root / "shot.png").write_bytes(PNG)
    entry = {
        "path": "shot.png", "description": "before", "mimeType": "image/x-claimed", "metadata": {"url": "x", "at": [1, 2]},
    }  # fmt: skip
    kept = (await road.data("artifact.ingest", input={"manifest": [entry]}))["artifacts"][0]
    assert (kept["description"], kept["mimeType"], kept["metadata"]) == ("before", "image/x-claimed", entry["metadata"])
    assert kept["mediaType"] == "image/png"
    assert (await road.data("artifact.list"))["artifacts"] == [kept]
    given = {"text": "ok", "description": "d", "mimeType": "text/plain", "metadata": {"a": 1}}
    attached = (await road.data("artifact.attach", input=given))["artifact"]
    assert (attached["description"], attached["mimeType"], attached["metadata"]) == ("d", "text/plain", {"a": 1})


@pytest.mark.parametrize(
    "entry",
    [
        {"text": "x", "description": 5}, {"text": "x", "description": "y" * 2001}, {"text": "x", "mimeType": "png"},
        {"text": "x", "metadata": []}, {"text": "x", "metadata": {"a": "b" * 9000}}, {"path": "a.txt", "uri": "file:///a"},
        {"uri": "https://example.org/shot.png"}, {"uri": "data:text/plain,x"}, {"uri": "file://elsewhere/a"}, {"uri": "file:a"},
        {"uri": "file:///a?x=1"}, {"uri": "file:///%ff"}, {"uri": "file:///a%00b"}, {"uri": "shot.png"}, {"uri": "file://["},
        {"uri": "file:///etc/passwd"},
    ],
)  # fmt: skip
async def test_what_cannot_be_kept_is_refused_in_words(road: Road, entry: dict[str, Any]) -> None:
    """Point 004-009: nothing is dropped silently, and a URI of another kind is refused with the reason."""
    (road.root / "a.txt").write_text("a")
    envelope = await road.call("artifact.ingest", input={"manifest": [entry]})
    assert envelope["error"]["code"] == "invalid_request" and len(envelope["error"]["message"]) > 20
    assert (await road.data("artifact.list"))["artifacts"] == []


async def test_a_file_uri_inside_the_scope_is_taken(road: Road) -> None:
    (road.root / "a shot.png").write_bytes(PNG)
    for uri in (f"file://{road.root}/a%20shot.png", f"file://localhost{road.root}/a%20shot.png"):
        kept = (await road.data("artifact.ingest", input={"manifest": [{"uri": uri}]}))["artifacts"][0]
        assert kept["size"] == len(PNG)


async def test_files_are_taken_from_the_scope_and_its_intake_roots(taking: Road, tmp_path: Path) -> None:
    """Point 004-018: absolute paths inside the scope, agent-browser's own folder, and a folder the owner named."""
    places = [
        taking.root / "in.png",
        tmp_path / "drop" / "sub" / "d.png",
        tmp_path / "person/.agent-browser/tmp/shot.png",
    ]
    for place in places:
        place.write_bytes(PNG)
        kept = (await taking.data("artifact.ingest", input={"path": str(place), "kind": "screenshot"}))["artifacts"]
        assert kept[0]["size"] == len(PNG)
        answer = {"success": True, "data": {"path": str(place)}}
        assert len((await taking.data("artifact.ingest", input={"manifest": answer}))["artifacts"]) == 1
    await taking.data("artifact.attach", str(places[1]))
    refused = await taking.code("artifact.ingest", scope="plain", input={"path": str(places[1])})
    assert refused == "path_out_of_scope"
    assert (await taking.data("artifact.list", scope="plain"))["artifacts"] == []


async def test_an_intake_root_opens_nothing_else(taking: Road, tmp_path: Path) -> None:
    """Point 004-018: no link, other scope, state, saved login, secret, folder, pipe or hardlink is taken."""
    drop, browser = tmp_path / "drop", tmp_path / "person" / ".agent-browser"
    secret = tmp_path / "secret.txt"
    secret.write_text("CANARY")
    (drop / "link.txt").symlink_to(secret)
    (drop / "inside.txt").write_text("fine")
    (drop / "within.txt").symlink_to(drop / "inside.txt")
    (drop / "up").symlink_to(tmp_path)
    (drop / "other" / "x.txt").write_text("CANARY")
    (drop / ".env").write_text("CANARY")
    (drop / "id_rsa").write_text("CANARY")
    os.link(secret, drop / "hard.txt")
    os.mkfifo(drop / "pipe")
    (browser / "sessions" / "login.txt").write_text("CANARY")
    (browser / ".encryption-key").write_text("CANARY")
    targets = [
        drop / "link.txt", drop / "within.txt", drop / "up" / "secret.txt", drop / "other" / "x.txt", drop / ".env",
        drop / "id_rsa", drop / "hard.txt", drop / "pipe", drop / "sub", drop, browser / "sessions" / "login.txt",
        browser / ".encryption-key", f"{drop}/../secret.txt", f"{drop}x/a", tmp_path / "home" / "config.json", secret,
    ]  # fmt: skip
    for target in targets:
        for uri in (False, True):
            given: dict[str, Any] = {"manifest": [{"uri": f"file://{target}"}]} if uri else {"path": str(target)}
            envelope = await taking.call("artifact.ingest", input=given)
            assert not envelope["ok"] and "CANARY" not in str(envelope), target
    assert (await taking.data("artifact.list"))["artifacts"] == []


async def test_the_state_folder_is_closed_though_the_temporary_folder_holds_it(tmp_path: Path) -> None:
    scopes = [
        folder_scope(tmp_path / "root", intakeRoots=["temporary", str(tmp_path)]),
        folder_scope(tmp_path / "b", "b"),
    ]
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x.txt").write_text("CANARY")
    async with Road.open(tmp_path, scopes) as road:
        (road.home / "note.txt").write_text("CANARY")
        for place in (road.home / "note.txt", tmp_path / "b" / "x.txt"):
            assert await road.code("artifact.ingest", input={"path": str(place)}) == "permission_denied"
        assert (await road.data("artifact.list"))["artifacts"] == []


async def test_a_backend_says_what_policy_decides_over_it(road: Road) -> None:
    """Points 004-023, 004-027 and 004-032: touchpoints, the latest artifact's backend, and backends found as files."""
    status = await road.data("backend.status")
    by_name = {backend["name"]: backend for backend in status["backends"]}
    assert list(by_name) == ["ghost-os", "agent-browser", "cua-driver", "peekaboo"]
    assert "intakeRoots" in by_name["agent-browser"]["policyTouchpoints"]
    assert "allowLocalFallback" in status["localFallback"]["policyTouchpoints"]
    await road.data("artifact.ingest", input={"text": "x", "backend": "peekaboo"})
    again = await road.call("backend.status")
    assert again["data"]["preferred"] == {"name": "peekaboo", "source": "artifact"}
    assert bool(again["warnings"]) is not by_name["peekaboo"]["available"]


async def test_an_intake_root_above_the_scope_does_not_open_what_the_scope_denies(tmp_path: Path) -> None:
    own = tmp_path / "drop" / "own"
    (own / "closed").mkdir(parents=True)
    (own / "closed" / "note.txt").write_text("closed")
    scope = folder_scope(own, deniedPaths=["closed/**"], intakeRoots=[str(tmp_path / "drop")])
    async with Road.open(tmp_path, [scope]) as road:
        for spelt in ("own", "./own"):
            entry = {"path": f"{tmp_path}/drop/{spelt}/closed/note.txt"}
            assert await road.code("artifact.ingest", input={"manifest": [entry]}) == "permission_denied", spelt
        assert (await road.data("artifact.list"))["artifacts"] == []
