"""Attacks with giants and with nothing: a million names, endless windows, no kernel boundary, a file nobody may read."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from computer_linker.artifacts.broker import ArtifactBroker
from computer_linker.artifacts.store import ArtifactStore, Bounds
from computer_linker.computer.simulated import SimulatedComputer
from computer_linker.computer.simulated.world import SimulatedControl
from computer_linker.model.geometry import Rect
from computer_linker.providers.sandbox.sandbox import Sandbox
from computer_linker.service.info import computer_info
from support.agents_road import agent_road, command
from support.road import LOCAL, Road, computer_scope, folder_scope
from support.service import PROGRAM, environment, serving, write_config

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("files", [100_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
def test_a_tree_of_very_many_files_is_cut_and_costs_little(tmp_path: Path, files: int) -> None:
    """RES-019."""
    with serving(tmp_path) as service:
        for folder in range(files // 1000):
            place = service.root / f"d{folder:04}"
            place.mkdir()
            for name in range(1000):
                os.close(os.open(place / f"f{name}", os.O_CREAT | os.O_WRONLY))
        link = service.http()
        call = {"scope": "app", "op": "file.tree", "target": ".", "options": {"maxDepth": 99, "maxEntries": 10**9}}
        assert link.control("computer_operation", **call | {"options": {"maxEntries": 10}})["ok"]
        before, started = service.memory_mb(), time.monotonic()
        told = link.control("computer_operation", **call)
        took = time.monotonic() - started
        link.close()
        assert told["ok"] and len(told["data"]["entries"]) <= 120_000
        assert told["data"]["truncated"] or files < 120_000
        assert took < 60
        assert service.memory_mb() - before < 64
    shutil.rmtree(tmp_path / "root")


async def test_a_giant_picture_is_the_display_and_no_more(tmp_path: Path) -> None:
    """RES-038: no upscaling, whatever size is asked for."""
    async with Road.open(tmp_path, [computer_scope("screen")], SimulatedComputer()) as road:
        size = {"maxWidth": 10**9, "maxHeight": 10**9}
        told = await road.call("screen.capture", "primary", scope="screen", options=size)
        assert told["ok"] or told["error"]["code"] == "invalid_request"
        assert not told["ok"] or (told["data"]["width"], told["data"]["height"]) == (1280, 800)


async def test_a_window_with_endless_controls_is_cut(tmp_path: Path) -> None:
    """RES-039."""
    computer = SimulatedComputer()
    window = computer.world.open("editor")
    place = Rect(x=10, y=50, width=80, height=30)
    window.controls += [SimulatedControl("button", f"b{number}", place) for number in range(200_000)]
    async with Road.open(tmp_path, [computer_scope()], computer) as road:
        started = time.monotonic()
        limits = {"axMaxDepth": 10**9, "axMaxNodes": 10**9, "includeScreenshot": False}
        told = await road.call("desktop.observe", scope="desk", options=limits)
        assert time.monotonic() - started < 60
        assert told["ok"] and len(told["data"]["evidence"]["nodes"]) <= 2000, told.get("error")
        assert told["data"]["evidence"]["truncated"] and "lowered" in str(told["warnings"])


TITLES = ("\x1b]0;owned\x07\x1b[2J", "a\u202egnp.exe\u2066", "<script>alert(1)</script>\r\n\u2028next", "T" * 1_000_000)


async def test_no_title_steers_whoever_reads_it(tmp_path: Path) -> None:
    """DESK-009: cut, and everything that is not seen is written out."""
    computer = SimulatedComputer()
    for title in TITLES:
        computer.world.open("editor", title)
    async with Road.open(tmp_path, [computer_scope("screen")], computer) as road:
        for op in ("screen.list", "window.list"):
            told = await road.data(op, scope="screen")
            titles = [window["title"] for window in told["windows"]]
            assert len(titles) == len(TITLES) and all(len(title) <= 200 for title in titles), titles
            hidden = "\x1b\x07\r\n\u2028\u202e\u2066"
            assert not [title for title in titles if any(char in title for char in hidden)], titles


async def test_without_a_boundary_required_refuses_and_auto_tells(tmp_path: Path) -> None:
    """SBX-017: and get_computer_info tells it of each scope before anything is tried."""
    root = tmp_path / "root"
    scopes = [
        folder_scope(root, name, allowedCommands=["touch *"], sandbox=name) for name in ("required", "auto", "off")
    ]
    async with Road.open(tmp_path, scopes) as road:
        road.app.services.provide(Sandbox, Sandbox(road.app.computer, road.home, kinds=()))
        told: dict[str, Any] = await computer_info(road.app, LOCAL, ["scopes"], None)
        boundaries = {scope["id"]: scope["capabilityPolicy"]["boundary"] for scope in told["scopes"]}
        assert {name: found["commands"] for name, found in boundaries.items()} == dict.fromkeys(boundaries, "none"), (
            boundaries
        )
        made = {"command": ["touch", "made"]}
        for op in ("command.run", "command.start"):
            assert await road.code(op, ".", scope="required", input=made) == "provider_unavailable"
        assert not (root / "made").exists()
        asked = {"op": "command.run", "target": ".", "input": {"command": ["touch", "made"]}}
        assert not (await road.data("computer.explain", scope="required", input=asked))["allowed"]
        ran = await road.call("command.run", ".", scope="auto", input={"command": ["touch", "made"]})
        assert ran["data"]["boundary"] == "none" and ran["warnings"]
        event = (await road.data("history.last", scope="auto"))["events"][0]
        assert event["op"] == "command.run" and event["boundary"] == "none"


def test_a_file_that_nobody_may_read_is_refused_without_a_word_of_the_host(tmp_path: Path) -> None:
    """SPEC-012, by a service without root's way around modes."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("setpriv is missing")
    home, root = tmp_path / "home", tmp_path / "root"
    write_config(home, root)
    (root / "no").write_text("SECRETmode")
    (root / "d").mkdir()
    (root / "d" / "x.txt").write_text("SECRETmode")
    (root / "no").chmod(0)
    (root / "d").chmod(0)
    drop = "-dac_override,-dac_read_search"
    argv = [setpriv, "--bounding-set", drop, "--inh-caps", drop, *PROGRAM, "op"]
    try:
        for op, target, given in REFUSED:
            call = [*argv, op, *([target] if target else []), "--scope", "app", "--json"]
            call += ["--input", json.dumps(given)] if given else []
            ran = subprocess.run(call, env=environment(home), capture_output=True, text=True, timeout=240, check=False)
            assert ran.stdout, ran.stderr
            told = json.loads(ran.stdout)
            text = ran.stdout + ran.stderr
            assert "Traceback" not in text and str(root) not in text and "SECRETmode" not in text, text
            assert told["ok"] is False or op in ("file.search", "file.tree", "file.read_many"), told
            assert told["ok"] or told["error"]["code"] in ("os_permission_required", "permission_denied"), told
    finally:
        (root / "d").chmod(0o700)
    assert (root / "no").stat().st_size == len("SECRETmode")


REFUSED: list[tuple[str, str, dict[str, Any] | None]] = [
    ("file.read", "no", None), ("file.read", "d/x.txt", None), ("file.stat", "d/x.txt", None), ("file.list", "d", None),
    ("file.copy", "no", {"destination": "copy"}), ("file.search", ".", {"query": "SECRET"}), ("file.tree", ".", None),
    ("file.write", "d/new.txt", {"content": "x"}), ("file.delete", "d/x.txt", None),
    ("file.patch", "no", {"edits": [{"oldText": "SECRET", "newText": "x"}]}),
    ("artifact.attach", "no", None), ("file.read_many", "", {"paths": ["no", "d/x.txt"]}),
]  # fmt: skip


async def test_a_projects_env_file_moves_nobodys_home(tmp_path: Path) -> None:
    """CFG-006."""
    root, mark = tmp_path / "root", tmp_path / "mark"
    (root / ".codex").mkdir(parents=True)
    (root / ".env").write_text("CODEX_HOME=./.codex\nCOMPUTER_LINKER_CONFIG=./c.json\nCOMPUTER_LINKER_HOME=./state\n")
    server = f'[mcp_servers.evil]\ncommand = "/usr/bin/touch"\nargs = ["{mark}", "{root}/mark"]\n'
    (root / ".codex" / "config.toml").write_text(server)
    (root / "c.json").write_text(json.dumps({"scopes": []}))
    async with agent_road(tmp_path, "codex", command("codex", "echo ok"), {"say": "done"}) as (road, model):
        told = await road.call("codex.run", ".", input={"prompt": "x"})
        assert told["ok"] and model.requests, told
    assert not mark.exists() and not (root / "mark").exists() and not (root / "state").exists()


async def test_a_batch_of_giants_is_cut_and_loses_nothing_that_it_did(tmp_path: Path) -> None:
    """Twenty-five full answers held a gigabyte, and the reply then told nothing of what had been done."""
    async with Road.open(tmp_path) as road:
        (road.root / "big").write_bytes(b"a" * 8_000_000)
        read = {"op": "file.read", "target": "big", "options": {"maxBytes": 8_000_000}}
        made = [{"op": "file.create", "target": f"made-{number}", "input": {"content": ""}} for number in range(3)]
        told = await road.call("batch.run", input={"operations": [made[0], read, read, made[1], read, made[2]]})
        assert told["ok"] and told["data"]["truncated"] and "full" in str(told["warnings"])
        results = told["data"]["results"]
        assert [one["op"] for one in results] == ["file.create", "file.read", "file.read"]
        assert results[0]["data"]["path"] == "made-0" and len(results[1]["data"]["content"]) > 7_000_000
        assert results[2]["ok"] and results[2]["data"] is None and "left out" in str(results[2]["warnings"])
        assert sorted(path.name for path in road.root.iterdir()) == ["big", "made-0"], "what is not told was not run"
        assert len(json.dumps(told)) < 8 * 1024 * 1024


async def test_a_flood_of_evidence_stays_within_the_scopes_quota(tmp_path: Path) -> None:
    """ART-023: the oldest make way, on disk too, and what another scope keeps stays."""
    scopes = [folder_scope(tmp_path / "root"), folder_scope(tmp_path / "root", "other")]
    async with Road.open(tmp_path, scopes) as road:
        folder, quota = road.home / "artifacts", 1_000_000
        broker = ArtifactBroker(folder)
        broker._store = ArtifactStore(folder, Bounds(scope_bytes=quota))
        road.app.services.provide(ArtifactBroker, broker)
        theirs = await road.data("artifact.ingest", scope="other", input={"kind": "console_logs", "text": "theirs"})
        for number in range(60):
            await road.data("artifact.ingest", input={"kind": "console_logs", "text": f"{number:02}" * 50_000})
        kept = sum(path.stat().st_size for path in (folder / "objects").rglob("*") if path.is_file())
        assert kept <= quota + len("theirs")
        assert len((await road.data("artifact.list"))["artifacts"]) == 10
        assert (await road.call("artifact.read", theirs["artifacts"][0]["id"], scope="other"))["ok"]
        too_large = {"kind": "console_logs", "text": "A" * 10_000_000}
        assert await road.code("artifact.ingest", input=too_large) == "invalid_request"
