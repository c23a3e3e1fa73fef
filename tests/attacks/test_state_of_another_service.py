"""The state folder of a second service inside a scope of the first: its token and key are closed like our own, by its mark."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from attacks.test_decisions_reach_effects import python, road_under
from computer_linker import home as places
from computer_linker.config.runtime import forbidden_root
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio

TOKEN = "CANARY-OWNER-TOKEN"


def second(home: Path) -> Path:
    """A state folder as a service leaves it, also one that is not running."""
    home.mkdir(mode=0o700, parents=True)
    lock = places.take_lock(str(home))
    assert lock is not None
    os.close(lock)
    places.make_key(str(home))
    (home / "config.json").write_text(json.dumps({"schemaVersion": 1, "ownerToken": TOKEN}))
    (home / "plug.py").write_text("def token(): ...\n")
    (home / "audit").mkdir()
    (home / "audit" / "0001.log").write_text(TOKEN)
    return home


@pytest.fixture
def scopes(tmp_path: Path) -> list[dict[str, Any]]:
    root = tmp_path / "root"
    second(root / "tools" / "second")
    (root / "beside.txt").write_text("open")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / "into").symlink_to("tools/second")
    (root / "to-config").symlink_to("tools/second/config.json")
    common: dict[str, Any] = {"allowedCommands": ["*"], "sandbox": "required"}
    return [
        folder_scope(root, **common),
        folder_scope(root, "wide", allowSensitive=True, allowProtected=True, **common),
    ]


ACTS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("file.read", "tools/second/config.json", {}, {}),
    ("file.read", "into/config.json", {}, {}),
    ("file.read", "to-config", {}, {}),
    ("file.read", "tools/second/audit/0001.log", {}, {}),
    ("file.list", "tools/second", {}, {}),
    ("file.tree", "tools/second", {}, {}),
    ("file.stat", "tools/second/config.json", {}, {"hash": True}),
    ("file.write", "tools/second/config.json", {"content": "x"}, {}),
    ("file.create", "tools/second/new.json", {"content": "x"}, {}),
    ("file.create", "tools/second/audit/new.json", {"content": "x"}, {}),
    ("file.mkdir", "tools/second/folder", {}, {}),
    ("file.patch", "tools/second/config.json", {"edits": [{"oldText": "schemaVersion", "newText": "x"}]}, {}),
    ("file.move", "tools/second/config.json", {"destination": "out.json"}, {}),
    ("file.move", "tools/second", {"destination": "elsewhere"}, {}),
    ("file.move", "tools", {"destination": "elsewhere"}, {}),
    ("file.copy", "tools/second/config.json", {"destination": "out.json"}, {}),
    ("file.copy", "tools", {"destination": "copied"}, {}),
    ("file.delete", "tools/second/.computer-linker-state", {}, {}),
    ("file.delete", "tools/second", {}, {"recursive": True}),
    ("file.delete", "tools", {}, {"recursive": True}),
    ("file.search", "tools/second", {"query": "CANARY"}, {}),
    ("code.outline", "tools/second/plug.py", {}, {}),
    ("code.search_symbols", "tools/second", {"query": "token"}, {}),
    ("artifact.attach", "tools/second/config.json", {"kind": "log"}, {}),
    ("command.run", "tools/second", {"command": ["pwd"]}, {}),
]


@pytest.mark.parametrize("scope", ["app", "wide"])
@pytest.mark.parametrize(("op", "target", "given", "options"), ACTS, ids=[f"{act[0]} {act[1]}" for act in ACTS])
async def test_no_operation_opens_or_changes_it(
    tmp_path: Path,
    scopes: list[dict[str, Any]],
    scope: str,
    op: str,
    target: str,
    given: dict[str, Any],
    options: dict[str, Any],
) -> None:
    root = tmp_path / "root"
    before = {str(path): path.stat().st_mtime_ns for path in root.rglob("*")}
    async with Road.open(tmp_path, scopes) as road:
        answer = await road.call(op, target, scope=scope, input=given or None, options=options or None)
    assert not answer["ok"] and answer["error"]["code"] == "permission_denied", answer
    assert TOKEN not in str(answer)
    assert {str(path): path.stat().st_mtime_ns for path in root.rglob("*")} == before


@pytest.mark.parametrize("scope", ["app", "wide"])
async def test_searches_and_trees_from_above_leave_it_out(
    tmp_path: Path, scopes: list[dict[str, Any]], scope: str
) -> None:
    wide = {"includeHidden": True, "gitignore": False}
    async with Road.open(tmp_path, scopes) as road:
        found = await road.data("file.search", ".", scope=scope, input={"query": "CANARY|open"}, options=wide)
        names = await road.data("file.find", ".", scope=scope, input={"pattern": "**/*"}, options=wide)
        tree = await road.data("file.tree", ".", scope=scope, options={"maxDepth": 8, "gitignore": False})
    assert [match["path"] for match in found["matches"] if not match["path"].startswith(".git/")] == ["beside.txt"]
    assert not [path for path in names["files"] if "second/" in path]
    assert not [entry for entry in tree["entries"] if "second/" in entry["path"]]


@pytest.mark.parametrize("scope", ["app", "wide"])
@pytest.mark.parametrize("path", ["tools/second/config.json", "tools", "."])
async def test_git_stages_and_shows_none_of_it(
    tmp_path: Path, scopes: list[dict[str, Any]], scope: str, path: str
) -> None:
    async with Road.open(tmp_path, scopes) as road:
        staged = await road.call("git.stage", ".", scope=scope, input={"paths": [path]})
        shown = await road.call("git.diff", ".", scope=scope, options={"staged": True})
        status = await road.call("git.status", ".", scope=scope)
    assert TOKEN not in str(shown) and "second/" not in str((staged.get("data"), status))
    index = subprocess.run(
        ["git", "-C", str(tmp_path / "root"), "ls-files"], capture_output=True, text=True, check=True
    )
    assert "second" not in index.stdout.replace("to-config", "")


@pytest.mark.parametrize("scope", ["app", "wide"])
async def test_a_command_in_bubblewrap_sees_nothing_of_it_and_cannot_move_it(
    tmp_path: Path, scopes: list[dict[str, Any]], scope: str
) -> None:
    script = (
        "cat tools/second/config.json tools/second/owner.key tools/second/audit/* into/config.json; ls tools/second/audit;"
        "mv tools/second moved; mv tools elsewhere; rm -f tools/second/.computer-linker-state; ln tools/second/config.json out;"
        "cp -r tools/second taken; cat taken/config.json; echo x > tools/second/config.json; true"
    )
    async with Road.open(tmp_path, scopes) as road:
        for _ in range(2):
            ran = await road.data("command.run", ".", scope=scope, input={"command": ["sh", "-c", script]})
            assert ran["boundary"].startswith("bubblewrap") and TOKEN not in str(ran), ran
    home = tmp_path / "root" / "tools" / "second"
    assert TOKEN in (home / "config.json").read_text() and (home / places.MARK_NAME).exists()


async def test_a_running_command_sees_no_file_that_is_replaced_in_it(
    tmp_path: Path, scopes: list[dict[str, Any]]
) -> None:
    """As `token rotate` replaces the config: what covered the old file is gone with it."""
    script = (
        "import os, sys, time\n"
        "print(os.listdir('tools/second'), flush=True)\n"
        "try: open('tools/second/made', 'w')\n"
        "except OSError as error: print('refused', flush=True)\n"
        "sys.stdin.readline()\n"
        "for name in ('config.json', 'owner.key'):\n"
        "    try: print(open(f'tools/second/{name}').read(), flush=True)\n"
        "    except OSError: print('closed', flush=True)\n"
    )
    home = tmp_path / "root" / "tools" / "second"
    async with Road.open(tmp_path, scopes) as road:
        started = await road.data("command.start", ".", input={"command": ["/usr/bin/python3", "-c", script]})
        waits = {"waitFor": "refused", "waitSeconds": 50}
        first = await road.data("command.read", started["processId"], options=waits)
        for name in ("config.json", "owner.key"):
            (home / "fresh").write_text(f"{TOKEN}-new")
            (home / "fresh").replace(home / name)
        await road.data("command.send", started["processId"], input={"text": "go\n"})
        ended = {"cursor": first["cursor"], "untilEnd": True, "waitSeconds": 50}
        last = await road.data("command.read", started["processId"], options=ended)
    shown = "".join(chunk["text"] for chunk in (*first["chunks"], *last["chunks"]))
    assert shown.split() == ["[]", "refused", "closed", "closed"], shown
    assert not (home / "made").exists()


async def test_a_state_folder_that_appears_later_is_closed_too(tmp_path: Path) -> None:
    async with road_under(tmp_path, "bubblewrap") as road:
        show = {"command": ["sh", "-c", "cat later/config.json; true"]}
        assert (await road.data("command.run", ".", input=show))["stdout"] == ""
        second(road.root / "later")
        ran = await road.data("command.run", ".", input=show)
        assert TOKEN not in str(ran)
        assert (await road.call("file.read", "later/config.json"))["error"]["code"] == "permission_denied"
        shutil.rmtree(road.root / "later")
        (road.root / "later").mkdir()
        (road.root / "later" / "config.json").write_text("plain")
        assert (await road.data("command.run", ".", input=show))["stdout"] == "plain"


async def test_a_mark_that_a_command_made_is_named_in_each_refusal(tmp_path: Path) -> None:
    """Found: the scope was closed to every client, and nothing said by which file."""
    async with road_under(tmp_path, "bubblewrap") as road:
        (road.root / "a.txt").write_text("kept")
        for folder in ("", "inner/"):
            (road.root / folder).mkdir(exist_ok=True)
            make = {"command": ["sh", "-c", f"touch {folder}{places.MARK_NAME}; touch {folder}b.txt"]}
            await road.call("command.run", ".", input=make)
            mark = road.root / folder / places.MARK_NAME
            assert mark.exists()
            for op, given in (("file.read", None), ("git.status", None), ("command.run", {"command": ["pwd"]})):
                target = f"{folder}b.txt" if op == "file.read" else folder or "."
                refused = (await road.call(op, target, input=given))["error"]
                assert refused["code"] == "permission_denied", refused
                assert f"the file {folder}{places.MARK_NAME} marks" in refused["message"], refused
                assert "look at that file and remove it" in refused["message"]
            told = forbidden_root(str(mark.parent), tmp_path / "own")
            assert told is not None and told.endswith(f"look at the file {places.MARK_NAME} in it and remove it")
            mark.unlink()
            assert (await road.call("file.read", f"{folder}b.txt"))["ok"]


async def test_under_landlock_commands_are_refused(tmp_path: Path) -> None:
    async with road_under(tmp_path, "landlock") as road:
        second(road.root / "second")
        answer = await road.call("command.run", ".", input=python("print(open('second/config.json').read())"))
        assert answer["error"]["code"] == "provider_unavailable" and TOKEN not in str(answer), answer
        assert f"the file second/{places.MARK_NAME} marks it" in answer["error"]["message"], answer


def test_a_root_in_a_state_folder_is_refused(tmp_path: Path) -> None:
    home = second(tmp_path / "second")
    for root, where in ((home, "it"), (home / "audit", "a folder above it")):
        told = forbidden_root(str(root), tmp_path / "own")
        assert told is not None and told.startswith("lies in the state folder of another service; if it is none, ")
        assert told.endswith(f"look at the file {places.MARK_NAME} in {where} and remove it")
    assert forbidden_root(str(tmp_path), tmp_path / "own") is None


@pytest.mark.parametrize("inside", ["config.json", "audit/0001.log", "plug.py"])
async def test_no_intake_takes_a_file_of_it(tmp_path: Path, inside: str) -> None:
    home = second(tmp_path / "intake" / "second")
    (tmp_path / "intake" / "plain.txt").write_text("plain")
    scope = folder_scope(tmp_path / "root", intakeRoots=[str(tmp_path / "intake"), str(home)])
    (tmp_path / "root").mkdir()
    async with Road.open(tmp_path, [scope]) as road:
        kind = {"kind": "log"}
        assert (await road.call("artifact.attach", str(tmp_path / "intake" / "plain.txt"), input=kind))["ok"]
        answer = await road.call("artifact.attach", str(home / inside), input=kind)
        listed = await road.data("artifact.list")
    assert answer["error"]["code"] == "permission_denied" and len(listed["artifacts"]) == 1, (answer, listed)
