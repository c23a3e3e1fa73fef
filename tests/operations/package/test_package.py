"""package.list, package.run and package.start through the whole road."""

import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio

PACKAGE = {
    "name": "p",
    "version": "1.0.0",
    "scripts": {"show": "node -p 'process.argv.slice(1)' --", "dev": "echo up; sleep 60"},
}


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "package.json").write_text(json.dumps({"scripts": {"above": "touch marker"}}))
    (root / "package.json").write_text(json.dumps(PACKAGE))
    (root / "Makefile").write_text("hello:\n\t@echo made $(WHO)\n")
    scopes = [
        folder_scope(root, "app", allowedCommands=["npm *", "make *"]),
        folder_scope(root, "none", allowedCommands=["ls *"]),
    ]
    async with Road.open(tmp_path, scopes) as opened:
        yield opened


async def test_scripts_are_listed(road: Road) -> None:
    listed = await road.data("package.list", ".")
    assert listed["manager"] == "npm"
    assert [(script["name"], script["source"]) for script in listed["scripts"]] == [
        ("show", "package.json"), ("dev", "package.json"), ("hello", "Makefile"),
    ]  # fmt: skip


async def test_a_make_target_runs(road: Road) -> None:
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    ran = await road.data("package.run", ".", input={"script": "hello", "args": ["WHO=it"]})
    assert (ran["exitCode"], ran["stdout"]) == (0, "made it\n")


async def test_a_node_script_runs_and_starts(road: Road) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    ran = await road.data("package.run", ".", input={"script": "show", "args": ["--flag"]})
    assert ran["exitCode"] == 0 and "--flag" in ran["stdout"]
    started = await road.data("package.start", ".", input={"script": "dev"})
    assert started["commandPreview"] == "npm run dev"
    with anyio.fail_after(20):
        while "up" not in str(await road.data("command.read", started["processId"], options={"waitSeconds": 5})):
            pass
    assert (await road.data("command.stop", started["processId"]))["status"] == "stopped"


@pytest.mark.parametrize(
    ("target", "script"),
    [(".", "--ignore-scripts=false"), (".", "nothing"), (".", "above"), ("sub", "above"), ("..", "above")],
)
async def test_what_the_folder_does_not_define_is_refused(road: Road, target: str, script: str) -> None:
    code = await road.code("package.run", target, input={"script": script, "args": ["x"]})
    assert code in ("invalid_request", "not_found", "path_out_of_scope")
    assert not list(road.root.parent.rglob("marker"))


async def test_the_scopes_command_rules_hold_for_scripts(road: Road) -> None:
    assert await road.code("package.run", ".", scope="none", input={"script": "hello"}) == "permission_denied"
    assert await road.code("package.start", ".", scope="none", input={"script": "dev"}) == "permission_denied"
