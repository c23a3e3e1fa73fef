"""Protected names that a command makes: taken away in every folder that was there, and nothing is lost."""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.providers.sandbox.boundary import Kind
from computer_linker.providers.sandbox.sandbox import Sandbox
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio

KINDS: tuple[Kind, ...] = ("bubblewrap", "landlock", "none")


@asynccontextmanager
async def held_by(tmp_path: Path, kind: Kind, **policy: Any) -> AsyncIterator[Road]:
    (tmp_path / "root").mkdir(exist_ok=True)
    scope = folder_scope(tmp_path / "root", **{"allowedCommands": ["*", "sh *"], "sandbox": "auto", **policy})
    async with Road.open(tmp_path, [scope]) as road:
        sandbox = Sandbox(road.app.computer, road.home, kinds=() if kind == "none" else (kind,))
        found = await sandbox.probe()
        if found.kind != kind:
            pytest.skip(f"{kind} cannot be had here: {found.detail}")
        road.app.services.provide(Sandbox, sandbox)
        yield road
        await sandbox.aclose()


async def sh(road: Road, script: str) -> dict[str, Any]:
    return await road.call("command.run", ".", input={"command": ["sh", "-c", script]})


def kept(road: Road) -> dict[str, str]:
    """What `refused` holds, without the command's id and the number."""
    place = road.home / "refused"
    files = [path for path in place.glob("*/**/*") if path.is_symlink() or path.is_file()]
    return {
        str(Path(*path.relative_to(place).parts[2:])): f"-> {path.readlink()}"
        if path.is_symlink()
        else path.read_text()
        for path in files
    }


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param  # type: ignore[no-any-return]


async def test_planted_names_are_taken_away_in_every_folder(tmp_path: Path, kind: Kind) -> None:
    root = tmp_path / "root"
    folders = [".", "a", "a/b/c", "node_modules/p", "build/x", ".venv", "deep/" + "/".join("d" * 20)]
    for folder in folders:
        (root / folder).mkdir(parents=True, exist_ok=True)
    before = names(root)
    async with held_by(tmp_path, kind) as road:
        made = "; ".join(f"mkdir {folder}/.vscode; echo EVIL > {folder}/.vscode/tasks.json" for folder in folders)
        told = await sh(road, f"{made}; touch plain")
        assert names(root) == sorted([*before, "plain"])
        taken = [warning for warning in told["warnings"] if ".vscode is a protected name" in warning]
        assert len(taken) == len(folders) and all(str(road.home / "refused") in warning for warning in taken)
        assert [path.name for path in (road.home / "refused").iterdir()] == [told["operationId"]]
        assert kept(road) == {str(Path(folder, ".vscode/tasks.json")): "EVIL\n" for folder in folders}
        assert (road.home / "refused").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", [".VSCode", ".Git", "git~1", ".\u200bmcp.json", ".mcp.json ", ".\uff43odex"])
async def test_names_that_compare_equal_are_planted_too(tmp_path: Path, name: str) -> None:
    async with held_by(tmp_path, "bubblewrap") as road:
        told = await road.call("command.run", ".", input={"command": ["mkdir", name]})
        assert names(road.root) == [] and any("protected name" in warning for warning in told["warnings"])


async def test_a_planted_link_is_moved_as_a_link(tmp_path: Path, kind: Kind) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("mine")
    async with held_by(tmp_path, kind) as road:
        await sh(road, f"ln -s {outside} .vscode; ln -s /etc .idea; ln -s nowhere .mcp.json")
        assert names(road.root) == [] and (outside / "precious").read_text() == "mine"
        assert kept(road) == {".vscode": f"-> {outside}", ".idea": "-> /etc", ".mcp.json": "-> nowhere"}


async def test_what_is_kept_leads_nothing_elsewhere(tmp_path: Path) -> None:
    """A link that was refused must not become the place where the next name is kept."""
    outside = tmp_path / "outside"
    outside.mkdir()
    root = tmp_path / "root"
    for name in (".vscode", ".vscode.2", "1", "2"):
        (root / "a" / f"{name}x").mkdir(parents=True)
    (root / ".vscode.2").mkdir()
    async with held_by(tmp_path, "bubblewrap") as road:
        script = (
            "read line; while read line; do ln -s $0 .vscode; ln -s $0 .idea; mkdir .vscode.2/.git a/1x/.git; "
            "echo EVIL > .vscode.2/.git/x; echo made $line; done"
        )
        argv = ["sh", "-c", script, str(outside)]
        process = (await road.data("command.start", ".", input={"command": argv}))["processId"]
        await road.data("command.send", process, input={"text": "begin\n"})
        for number in range(3):
            typed = {"input": {"text": f"{number}\n"}, "options": {"waitFor": f"made {number}", "waitSeconds": 20}}
            assert (await road.data("command.send", process, **typed))["matched"]
            await until(lambda: not os.path.lexists(road.root / ".vscode"))
        await road.data("command.stop", process, options={"graceSeconds": 0})
        assert list(outside.iterdir()) == [] and list((root / ".vscode.2").iterdir()) == []


async def test_a_link_that_was_there_is_put_back(tmp_path: Path, kind: Kind) -> None:
    root = tmp_path / "root"
    (root / "shared").mkdir(parents=True)
    (root / ".vscode").symlink_to("shared")
    async with held_by(tmp_path, kind) as road:
        await sh(road, "rm .vscode; mkdir .vscode; echo EVIL > .vscode/tasks.json")
        assert (root / ".vscode").readlink() == Path("shared") and not (root / "shared" / "tasks.json").exists()
        await sh(road, "ln -sfn /etc .vscode")
        assert (root / ".vscode").readlink() == Path("shared")


async def test_what_was_there_is_not_touched(tmp_path: Path, kind: Kind) -> None:
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(root / "a")], check=True)
    (root / "a" / ".vscode").mkdir()
    (root / "a" / ".vscode" / "mine.json").write_text("mine")
    async with held_by(tmp_path, kind) as road:
        told = await sh(road, "cd a; mv .vscode x; mv x .vscode; touch f; git status --short; mkdir .idea; true")
        assert (root / "a" / ".vscode" / "mine.json").read_text() == "mine" and (root / "a" / ".git" / "HEAD").exists()
        assert not (root / "a" / ".idea").exists()
        assert sum("protected name" in warning for warning in told["warnings"]) == 1


async def test_a_folder_the_command_makes_keeps_its_protected_names(tmp_path: Path, kind: Kind) -> None:
    source = tmp_path / "source"
    subprocess.run(["git", "init", "-q", str(source)], check=True)
    async with held_by(tmp_path, kind) as road:
        told = await sh(road, "mkdir -p new/project/.vscode && git init -q clone && mkdir clone/.github && echo done")
        assert told["data"]["stdout"] == "done\n" and not any("protected" in warning for warning in told["warnings"])
        assert (road.root / "clone" / ".git" / "HEAD").exists() and (road.root / "new" / "project" / ".vscode").is_dir()
        again = await sh(road, "echo EVIL > clone/.git/hooks/pre-commit; mkdir clone/.idea; true")
        assert not (road.root / "clone" / ".idea").exists()
        if kind == "bubblewrap":
            assert not (road.root / "clone" / ".git" / "hooks" / "pre-commit").exists(), again


@pytest.mark.parametrize(
    "script",
    [
        "mv a b; mkdir b/.vscode; mv b a",
        "mv a b; mkdir a; mkdir a/.vscode",
        "rmdir a; mkdir -p a/.vscode",
        "mkdir x; mkdir x/.vscode; mv x/.vscode a/.vscode",
        "mkdir x; mkdir x/.vscode; rmdir a; mv x a",
        "mkdir a/.vscode; chmod 0 a/.vscode; chmod 0555 a",
        "mkdir -p a/.vscode/deep; chmod 0 a/.vscode/deep; chmod 0 a/.vscode",
        "mkfifo a/.vscode",
    ],
)
async def test_tricks_of_renaming_leave_nothing_planted(tmp_path: Path, script: str) -> None:
    (tmp_path / "root" / "a").mkdir(parents=True)
    async with held_by(tmp_path, "bubblewrap") as road:
        await sh(road, script)
        assert not os.path.lexists(road.root / "a" / ".vscode")


async def test_a_place_of_several_names_is_planted_as_a_whole(tmp_path: Path) -> None:
    async with held_by(tmp_path, "bubblewrap") as road:
        await sh(
            road, "mkdir -p .config/autostart x/.config/autostart; echo EVIL > .config/autostart/a; touch .config/b"
        )
        assert names(road.root) == [".config", ".config/b", "x", "x/.config", "x/.config/autostart"]
        assert kept(road) == {".config/autostart/a": "EVIL\n"}


async def test_what_a_running_process_plants_goes_within_a_moment(tmp_path: Path, kind: Kind) -> None:
    (tmp_path / "root" / "sub").mkdir(parents=True)
    async with held_by(tmp_path, kind) as road:
        script = "while read line; do mkdir sub/.vscode && echo EVIL > sub/.vscode/$line && echo made $line; done"
        process = (await road.data("command.start", ".", input={"command": ["sh", "-c", script]}))["processId"]
        for number in range(3):
            typed = {"input": {"text": f"{number}\n"}, "options": {"waitFor": f"made {number}", "waitSeconds": 20}}
            assert (await road.data("command.send", process, **typed))["matched"]
            await until(lambda: not (road.root / "sub" / ".vscode").exists())
        read = await road.call("command.read", process)
        assert len(read["warnings"]) == 3 and process in read["warnings"][0]
        await road.data("command.stop", process, options={"graceSeconds": 0})
        assert kept(road) == {f"sub/.vscode/{number}": "EVIL\n" for number in range(3)}


async def test_the_last_name_a_process_plants_is_gone_when_its_end_is_told(tmp_path: Path) -> None:
    async with held_by(tmp_path, "bubblewrap") as road:
        started = await road.data("command.start", ".", input={"command": ["sh", "-c", "mkdir .vscode .idea .zed"]})
        process, told = started["processId"], dict(started)
        with anyio.fail_after(20):
            while told["status"] == "running":
                told = await road.data("command.read", process, options={"waitSeconds": 5})
        assert names(road.root) == []


async def test_a_command_answers_for_what_another_one_planted_before(tmp_path: Path) -> None:
    """A name that was absent when the oldest running command started is planted, whoever looks first."""
    async with held_by(tmp_path, "bubblewrap") as road:
        script = "echo up; read line; mkdir .vscode; echo made; read line"
        process = (await road.data("command.start", ".", input={"command": ["sh", "-c", script]}))["processId"]
        await road.data("command.read", process, options={"waitSeconds": 20})
        typed = {"input": {"text": "\n"}, "options": {"waitFor": "made", "waitSeconds": 20}}
        await road.data("command.send", process, **typed)
        told = await sh(road, "ls -A")
        assert not (road.root / ".vscode").exists() and told["data"]["stdout"] == ""
        await road.data("command.stop", process, options={"graceSeconds": 0})


async def test_a_scope_that_allows_protected_names_keeps_them(tmp_path: Path, kind: Kind) -> None:
    async with held_by(tmp_path, kind, allowProtected=True) as road:
        told = await sh(road, "mkdir .vscode && git init -q . && touch .mcp.json")
        assert names(road.root)[0] == ".git" and (road.root / ".vscode").is_dir()
        assert not any("protected" in warning for warning in told["warnings"])


async def test_another_disk_gets_a_copy_and_too_much_stays_aside(tmp_path: Path) -> None:
    disk = Path("/dev/shm")
    if not disk.is_dir() or disk.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("no second disk here")
    root = disk / f"computer-linker-{os.getpid()}"
    root.mkdir()
    try:
        scope = folder_scope(root, allowedCommands=["*"], sandbox="required")
        async with Road.open(tmp_path, [scope]) as road:
            script = (
                "mkdir -p .vscode/a; echo EVIL > .vscode/a/b; ln -s /etc .vscode/l; mkfifo .vscode/p; "
                "mkdir .idea; head -c 70000000 /dev/zero > .idea/large; true"
            )
            told = await sh(road, script)
            assert told["data"]["exitCode"] == 0
            assert kept(road) == {".vscode/a/b": "EVIL\n", ".vscode/l": "-> /etc"}
            assert [path.name for path in root.iterdir()] == [f"idea.refused-{told['operationId']}"]
            assert any("idea.refused" in warning for warning in told["warnings"])
    finally:
        shutil.rmtree(root)


async def test_the_history_counts_refused_names(tmp_path: Path) -> None:
    async with held_by(tmp_path, "bubblewrap") as road:
        await sh(road, "mkdir .vscode")
        assert "refusedNames" in str(await road.data("history.timeline", options={"limit": 50}))


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not condition():
            await anyio.sleep(0.01)
