"""Packages from the registries on a view: dropped, the folder is as before; kept, it is as if they had been installed in it."""

import json
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from support.outcomes import digest, outcome
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
_PIP = "python3 -m venv env && env/bin/python -m pip install --quiet --no-cache-dir --no-compile --disable-pip-version-check"
_NPM = "npm --cache /tmp/npm --no-audit --no-fund --no-update-notifier --silent"
COMMANDS = [
    f"{_PIP} six==1.17.0",
    f"{_PIP} --target lib idna==3.10 certifi==2025.1.31 && rm -r env",
    f"{_PIP} --upgrade six==1.16.0 && env/bin/python -m pip install -q --no-cache-dir --no-compile six==1.17.0",
    f"{_NPM} install left-pad@1.3.0",
    f"{_NPM} install is-odd@3.0.1 && rm -rf node_modules && {_NPM} ci",
    f"{_NPM} install semver@7.6.0 && {_NPM} uninstall semver",
]


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    root = tmp_path / "root"
    root.mkdir()
    fill(root)
    async with Road.open(tmp_path, [folder_scope(root, allowedCommands=["*"], network=True)]) as opened:
        yield opened


def fill(root: Path) -> None:
    (root / "package.json").write_text(json.dumps({"name": "app", "version": "1.0.0", "private": True}))
    (root / "notes.txt").write_text("one\n")


async def run(road: Road, command: str, *, view: bool) -> dict[str, Any]:
    options = {"view": view, "timeoutSeconds": 240, "undo": False}
    return await road.data("command.run", ".", input={"command": ["sh", "-c", command]}, options=options)


@pytest.mark.parametrize("command", COMMANDS)
async def test_installs_are_dropped_without_a_trace_and_kept_as_a_bare_run(road: Road, command: str) -> None:
    root, since = road.root, time.time_ns() - 3_600_000_000_000
    before = digest(root)
    viewed = await run(road, command, view=True)
    assert digest(root) == before
    if viewed["exitCode"] != 0:
        pytest.skip(f"the registry cannot be reached from here: {viewed['stderr'][-200:]}")
    assert (await road.call("view.drop", viewed["view"]["viewId"]))["ok"] and digest(root) == before
    viewed = await run(road, command, view=True)
    kept = await road.call("view.keep", viewed["view"]["viewId"])
    assert kept["ok"] and kept["data"]["refused"] == [] and kept["data"]["kept"] > 2, kept
    after = outcome(root, since, (".pyc",))
    for path in root.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    fill(root)
    assert (await run(road, command, view=False))["exitCode"] == 0
    assert after == outcome(root, since, (".pyc",))
