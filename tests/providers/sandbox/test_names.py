"""Protected names that are not there: what a command makes of them is taken away again."""

import subprocess
from pathlib import Path

import pytest

from computer_linker.providers.sandbox.sandbox import Sandbox
from support.road import Road, folder_scope
from support.waiting import until

pytestmark = pytest.mark.anyio

PLANTS = (
    ".codex/config.toml",
    ".vscode/tasks.json",
    ".mcp.json",
    ".claude/settings.json",
    ".husky/pre-commit",
    ".envrc",
)


def boxed(root: Path) -> list[dict[str, object]]:
    return [folder_scope(root, allowedCommands=["*"], sandbox="required")]


def repository(place: Path) -> Path:
    place.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    return place


def planting(folder: str) -> list[str]:
    files = " ".join(f"{folder}/{name}" for name in PLANTS)
    script = (
        f'for f in {files}; do mkdir -p "$(dirname "$f")"; echo EVIL > "$f"; done; echo fine > {folder}/plain; true'
    )
    return ["sh", "-c", script]


async def test_names_made_in_a_repository_below_the_root_are_taken_away(tmp_path: Path) -> None:
    inner = repository(tmp_path / "root" / "packages" / "lib")
    before = sorted(path.name for path in inner.iterdir())
    async with Road.open(tmp_path, boxed(tmp_path / "root")) as road:
        await road.data("command.run", ".", input={"command": planting("packages/lib")})
    assert sorted(path.name for path in inner.iterdir()) == [*before, "plain"]


async def test_a_repository_cannot_be_renamed_by_a_command(tmp_path: Path) -> None:
    repository(tmp_path / "root" / "lib")
    async with Road.open(tmp_path, boxed(tmp_path / "root")) as road:
        script = "mv lib other; mkdir lib/.codex; echo EVIL > lib/.codex/config.toml; echo x > lib/.git/hooks/x; true"
        await road.data("command.run", ".", input={"command": ["sh", "-c", script]})
    assert [path.name for path in (tmp_path / "root").iterdir()] == ["lib"]
    assert [path.name for path in (tmp_path / "root" / "lib").iterdir()] == [".git"]
    assert not (tmp_path / "root" / "lib" / ".git" / "hooks" / "x").exists()


async def test_a_command_that_ends_does_not_open_names_for_one_that_runs(tmp_path: Path) -> None:
    async with Road.open(tmp_path, boxed(tmp_path / "root")) as road:
        script = "echo up; read line; mkdir -p .codex; echo EVIL > .codex/config.toml; echo tried; read line"
        started = await road.data("command.start", ".", input={"command": ["sh", "-c", script]})
        process = started["processId"]
        await road.data("command.read", process, options={"waitSeconds": 20})
        await road.data("command.run", ".", input={"command": ["true"]})
        waited = {"input": {"text": "\n"}, "options": {"waitFor": "tried", "waitSeconds": 20}}
        await road.data("command.send", process, **waited)
        await until(lambda: not (road.root / ".codex").exists())
        stopped = await road.call("command.stop", process)
        assert [warning.partition(" ")[0] for warning in stopped["warnings"]] == [".codex"]
        assert list(road.root.iterdir()) == []
        assert (road.home / "refused" / process / "1" / ".codex" / "config.toml").read_text() == "EVIL\n"


async def test_landlock_refuses_a_root_that_holds_the_state(tmp_path: Path) -> None:
    async with Road.open(tmp_path, [folder_scope(tmp_path, allowedCommands=["*"], sandbox="required")]) as road:
        sandbox = Sandbox(road.app.computer, road.home, kinds=("landlock",))
        if not (await sandbox.probe()).holds:
            pytest.skip("Landlock cannot be had here")
        road.app.services.provide(Sandbox, sandbox)
        marker = {"input": {"command": ["touch", "marker"]}}
        assert await road.code("command.run", ".", **marker) == "provider_unavailable"
        assert not (tmp_path / "marker").exists()


async def test_git_sees_nothing_of_what_stands_for_missing_names(tmp_path: Path) -> None:
    repository(tmp_path / "root")
    async with Road.open(tmp_path, boxed(tmp_path / "root")) as road:
        ran = await road.data("command.run", ".", input={"command": ["git", "status", "--short"]})
    assert (ran["exitCode"], ran["stdout"], ran["stderr"]) == (0, "", "")
