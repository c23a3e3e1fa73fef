"""Protected names that are not there: closed in the roots and in repositories below them, and nothing left behind."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from computer_linker.providers.sandbox.placeholders import Placeholders
from computer_linker.providers.sandbox.sandbox import Sandbox
from support.road import Road, folder_scope

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


async def test_names_missing_in_a_repository_below_the_root_cannot_be_made(tmp_path: Path) -> None:
    inner = repository(tmp_path / "root" / "packages" / "lib")
    before = sorted(path.name for path in inner.iterdir())
    async with Road.open(tmp_path, boxed(tmp_path / "root")) as road:
        await road.data("command.run", ".", input={"command": planting("packages/lib")})
    assert sorted(path.name for path in inner.iterdir()) == [*before, "plain"]


async def test_a_repository_that_is_renamed_by_the_command_stays_closed(tmp_path: Path) -> None:
    repository(tmp_path / "root" / "lib")
    async with Road.open(tmp_path, boxed(tmp_path / "root")) as road:
        script = (
            "mv lib other; mkdir -p other/.codex; echo EVIL > other/.codex/config.toml; echo x > other/.git/hooks/x"
        )
        await road.data("command.run", ".", input={"command": ["sh", "-c", script]})
    assert not list((tmp_path / "root").rglob(".codex")) and not list((tmp_path / "root").rglob("hooks/x"))


async def test_more_repositories_than_are_closed_are_told(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / "root" / f"r{number}" / ".git").mkdir(parents=True)
    async with Road.open(tmp_path, boxed(tmp_path / "root")) as road:
        told = await road.call("command.run", ".", input={"command": ["true"]})
    assert any(warning.startswith("2 repositories") for warning in told["warnings"])


async def test_a_command_that_ends_does_not_open_names_for_one_that_runs(tmp_path: Path) -> None:
    async with Road.open(tmp_path, boxed(tmp_path / "root")) as road:
        script = "echo up; read line; mkdir -p .codex; echo EVIL > .codex/config.toml; echo tried"
        started = await road.data("command.start", ".", input={"command": ["sh", "-c", script]})
        process = started["processId"]
        await road.data("command.read", process, options={"waitSeconds": 20})
        await road.data("command.run", ".", input={"command": ["true"]})
        assert (road.root / ".codex").is_dir()
        waited = {"input": {"text": "\n"}, "options": {"waitFor": "tried", "waitSeconds": 20}}
        await road.data("command.send", process, **waited)
        await road.data("command.stop", process)
        assert list(road.root.iterdir()) == []


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


@dataclass
class Place:
    """A root that is held, and placeholders for it."""

    root: Path
    fd: int
    placeholders: Placeholders

    def names(self) -> list[str]:
        return sorted(path.name for path in self.root.iterdir())


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    (tmp_path / "root").mkdir()
    found = Place(tmp_path / "root", os.open(tmp_path / "root", os.O_RDONLY), Placeholders(tmp_path / "store"))
    yield found
    os.close(found.fd)
    found.placeholders.close()


def test_what_appears_meanwhile_is_kept(place: Place) -> None:
    (place.root / ".npmrc").write_text("mine")
    held = place.placeholders.hold(place.fd, [".npmrc", ".mcp.json"])
    assert len(held) == 2 and (place.root / ".npmrc").read_text() == "mine"
    place.placeholders.let_go(held)
    assert place.names() == [".npmrc"] and (place.root / ".npmrc").read_text() == "mine"


def test_what_somebody_put_into_a_placeholder_stays(place: Place) -> None:
    held = place.placeholders.hold(place.fd, [".codex", ".claude"])
    (place.root / ".codex").chmod(0o755)
    (place.root / ".codex" / "mine.toml").write_text("mine")
    place.placeholders.let_go(held)
    assert (place.root / ".codex" / "mine.toml").read_text() == "mine"
    assert place.names() == [".codex"]


def test_placeholders_are_used_again_and_counted(place: Place, tmp_path: Path) -> None:
    for _ in range(3):
        first = place.placeholders.hold(place.fd, [".codex"])
        second = place.placeholders.hold(place.fd, [".codex"])
        place.placeholders.let_go(first)
        assert place.names() == [".codex"]
        place.placeholders.let_go(second)
        assert place.names() == []
    assert len(list((tmp_path / "store").iterdir())) == 1
