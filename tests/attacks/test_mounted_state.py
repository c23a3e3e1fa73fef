"""The state folder under any name, where a mount inside a root shows it, or a part of it, once more."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: bind mounts and their table")
SCRIPT = """
import asyncio, json, subprocess, sys
from pathlib import Path
from computer_linker.config.live import LiveConfig
from computer_linker.service.app import open_app
from support.road import Road

root, around = Path(sys.argv[1]), Path(sys.argv[2])
state = around / "kept"
def show(place, at):
    subprocess.run(["mount", "--bind", str(place), str(root / at)], check=True)
async def main():
    show(around, "above"); show(state, "itself"); show(state / "part", "part")
    found = {}
    async with open_app(state, LiveConfig(state, fresh_for_s=0)) as app:
        road = Road(app, root, state)
        assert (await road.call("file.read", "plain.txt"))["ok"]
        show(around, "late")
        for path in ("above/kept/config.json", "itself/config.json", "part/x", "late/kept/config.json"):
            found[f"read {path}"] = await road.call("file.read", path)
            found[f"write {path}"] = await road.call("file.write", path + ".new", input={"content": "x"})
            found[f"cat {path}"] = await road.call("command.run", ".", input={"command": ["cat", path]})
        found["search"] = await road.call("file.search", ".", input={"query": "CANARY"}, options={"includeHidden": True})
        found["open"] = await road.call("file.read", "above/beside.txt")
    print("ANSWER" + json.dumps(found))
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a service answers in whose mount namespace four mounts show its state, one of them made while it runs."""
    root, around = tmp_path_factory.mktemp("root"), tmp_path_factory.mktemp("around")
    state = around / "kept"
    (state / "part").mkdir(parents=True)
    state.chmod(0o700)
    (state / "part" / "x").write_text("CANARY")
    (around / "beside.txt").write_text("beside")
    (root / "plain.txt").write_text("plain")
    for name in ("above", "itself", "part", "late"):
        (root / name).mkdir()
    policy = {"allowedCommands": ["cat *"]}
    scope = {"id": "app", "type": "folder", "roots": [str(root)], "policy": policy}
    scope["capabilities"] = ["fs:read", "fs:write", "command:run"]
    config = {"schemaVersion": 1, "machineId": "m", "machineName": "CANARY", "host": "127.0.0.1", "port": 3939}
    (state / "config.json").write_text(json.dumps({**config, "ownerToken": "CANARY" * 8, "scopes": [scope]}))
    (state / "config.json").chmod(0o600)
    spaces = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*spaces, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces here")
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    done = subprocess.run(
        [*spaces, sys.executable, "-c", SCRIPT, str(root), str(around)],
        env=env, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "ANSWER" in done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.partition("ANSWER")[2])
    return found


def test_no_operation_reads_or_writes_the_state_through_a_mount(answers: dict[str, Any]) -> None:
    files = {name: answer for name, answer in answers.items() if name.startswith(("read", "write"))}
    assert {name: answer["ok"] for name, answer in files.items()} == dict.fromkeys(files, False)
    assert answers["search"]["data"]["matches"] == []


def test_no_command_reads_the_state_through_a_mount(answers: dict[str, Any]) -> None:
    ran = {name: answer for name, answer in answers.items() if name.startswith("cat") and answer["ok"]}
    assert all(answer["data"]["exitCode"] and not answer["data"]["stdout"] for answer in ran.values()), ran


def test_what_lies_beside_it_stays_open(answers: dict[str, Any]) -> None:
    assert answers["open"]["data"]["content"] == "beside"
