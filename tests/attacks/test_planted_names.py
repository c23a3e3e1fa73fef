"""Protected names that a command makes: taken away in every folder that was there, and nothing is lost."""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.providers.sandbox.boundary import Kind
from computer_linker.providers.sandbox.sandbox import Sandbox
from support.road import Road, folder_scope
from support.waiting import until

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
        # Moved there with its file: the folder alone could be taken away before the file is made.
        made = "; ".join(f"mkdir t; echo EVIL > t/tasks.json; mv t {folder}/.vscode" for folder in folders)
        told = await sh(road, f"{made}; touch plain")
        assert names(root) == sorted([*before, "plain"])
        taken = [warning for warning in told["warnings"] if ".vscode is a protected name" in warning]
        assert len(taken) == len(folders) and all(str(road.home / "refused") in warning for warning in taken)
        assert [path.name for path in (road.home / "refused").iterdir()] == [told["operationId"]]
        assert kept(road) == {str(Path(folder, ".vscode/tasks.json")): "EVIL\n" for folder in folders}
        assert (road.home / "refused").stat().st_mode & 0o777 == 0o700


async def test_what_was_taken_away_once_is_taken_away_from_every_later_command(tmp_path: Path, kind: Kind) -> None:
    async with held_by(tmp_path, kind) as road:
        for _ in range(3):
            told = await sh(road, "echo x > .mcp.json; ln -s a .bashrc; mkdir .vscode")
            assert names(road.root) == [] and sum("protected name" in warning for warning in told["warnings"]) == 3


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
        await sh(road, "rm .vscode; mkdir t; echo EVIL > t/tasks.json; mv t .vscode")
        assert (root / ".vscode").readlink() == Path("shared") and not (root / "shared" / "tasks.json").exists()
        await sh(road, "ln -sfn /etc .vscode")
        assert (root / ".vscode").readlink() == Path("shared")


AGAIN = """
import os, time
for _ in range(3):
    os.unlink(".vscode")
    time.sleep(0.6)
    os.mkdir(".vscode")
    print("made", flush=True)
    end = time.monotonic() + 20
    while not os.path.islink(".vscode") and time.monotonic() < end:
        time.sleep(0.005)
"""


async def test_a_link_is_put_back_as_often_as_it_is_replaced(tmp_path: Path) -> None:
    """What is put back is neither planted itself, nor forgotten when it is replaced again before the next look."""
    root = tmp_path / "root"
    (root / "shared").mkdir(parents=True)
    (root / ".vscode").symlink_to("shared")
    async with held_by(tmp_path, "bubblewrap") as road:
        ran = await road.call("command.run", ".", input={"command": ["python3", "-c", AGAIN]})
        assert ran["data"]["stdout"].split() == ["made"] * 3
        assert (root / ".vscode").readlink() == Path("shared"), ran["warnings"]


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


@pytest.mark.parametrize(
    ("script", "left"),
    [
        ("mv a t; mkdir t/.vscode", "t/.vscode"),
        ("mkdir new; mv a new/a; mkdir new/a/.vscode", "new/a/.vscode"),
        ("mv a t; mv plain t/.vscode", "t/.vscode"),
        ("mv a t; mkdir -p t/in/.config/autostart; mkdir -p t/.config/autostart", "t/.config/autostart"),
        ("mv a t; echo x > t/.mcp.json", "t/.mcp.json"),
        ("mkdir x; mkdir x/.git; mv a t; mv x/.git t/.git", "t/.git"),
        ("mv a/b t; mkdir t/.idea", "t/.idea"),
        ("mv a t; mkdir t/.vscode; sleep 0.6; mv t u", "u/.vscode"),
    ],
)
async def test_a_folder_that_was_there_is_not_its_own_under_another_name(
    tmp_path: Path, kind: Kind, script: str, left: str
) -> None:
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    (tmp_path / "root" / "plain").mkdir()
    async with held_by(tmp_path, kind) as road:
        told = await sh(road, script)
        assert not os.path.lexists(road.root / left), told
        assert sum("protected name" in warning for warning in told["warnings"]) == 1, told["warnings"]
        again = await sh(road, "mkdir made; mkdir made/.vscode; mv made moved; test -d moved/.vscode")
        assert again["data"]["exitCode"] == 0 and (road.root / "moved" / ".vscode").is_dir(), again


async def test_a_new_folder_with_the_inode_of_a_removed_one_is_its_own(tmp_path: Path, kind: Kind) -> None:
    """Birth times are coarse: what a command makes within its first milliseconds may look older than its start."""
    root = tmp_path / "root"
    root.mkdir()
    async with held_by(tmp_path, kind) as road:
        for number in range(6):
            (root / "old").mkdir()
            told = await sh(road, f"rmdir old; mkdir new{number}; mkdir new{number}/.vscode")
            assert (root / f"new{number}" / ".vscode").is_dir(), told


@pytest.mark.parametrize("kind", ["landlock", "none"])
async def test_what_comes_along_with_a_renamed_folder_stays(tmp_path: Path, kind: Kind) -> None:
    (tmp_path / "root" / "a" / ".vscode").mkdir(parents=True)
    (tmp_path / "root" / "a" / ".mcp.json").write_text("mine")
    async with held_by(tmp_path, kind) as road:
        told = await sh(road, "mv a t; mkdir t/.idea")
        assert names(road.root) == ["t", "t/.mcp.json", "t/.vscode"], told
        assert kept(road) == {}


BARE = """
import os, sys
os.chdir(sys.argv[1])
os.makedirs("objects", exist_ok=True); os.makedirs("refs", exist_ok=True)
open("config", "w").write("[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = touch EXECUTED; false\\n\\tbare = false\\n\\tworktree = .\\n")
open("HEAD", "w").write("ref: refs/heads/main\\n")
"""


@pytest.mark.parametrize("place", [".", "sub"])
async def test_a_repository_without_its_usual_name_is_planted_too(tmp_path: Path, kind: Kind, place: str) -> None:
    """git takes any folder with HEAD, objects and refs for a repository, and runs what its config says."""
    (tmp_path / "root" / "sub" / "config").mkdir(parents=True) if place == "." else (tmp_path / "root" / "sub").mkdir(
        parents=True
    )
    async with held_by(tmp_path, kind) as road:
        told = await road.call("command.run", ".", input={"command": ["/usr/bin/python3", "-c", BARE, place]})
        assert told["data"]["exitCode"] == 0, told
        assert any("HEAD is a protected name" in warning for warning in told["warnings"]), told
        assert not (road.root / place / "HEAD").exists() and (road.root / place / "config").is_file()
        subprocess.run(["git", "status"], cwd=road.root / place, capture_output=True, check=False)
        assert not (road.root / place / "EXECUTED").exists()
        made = await sh(road, "git init -q --bare new.git && echo done")
        assert made["data"]["stdout"] == "done\n" and (road.root / "new.git" / "HEAD").exists()
        if kind == "bubblewrap":
            tried = await sh(
                road, "echo x >> new.git/config; echo x > new.git/hooks/pre-receive; echo x > new.git/HEAD; ls new.git"
            )
            assert (
                "Read-only file system" in tried["data"]["stderr"]
                and "x\n" not in (road.root / "new.git" / "config").read_text()
            )
            assert not (road.root / "new.git" / "hooks" / "pre-receive").exists()
            pushed = await sh(
                road,
                "git init -q w && cd w && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git push -q ../new.git HEAD:refs/heads/main && git -C ../new.git log --format=%s main",
            )
            assert pushed["data"]["stdout"] == "x\n", pushed


async def test_what_only_resembles_a_repository_stays(tmp_path: Path, kind: Kind) -> None:
    for name in ("config", "objects", "hooks"):
        (tmp_path / "root" / name).mkdir(parents=True)
    async with held_by(tmp_path, kind) as road:
        await sh(road, "mkdir refs; touch config/a hooks/a; mkdir x; touch x/HEAD x/config")
        assert names(road.root) == [
            "config",
            "config/a",
            "hooks",
            "hooks/a",
            "objects",
            "refs",
            "x",
            "x/HEAD",
            "x/config",
        ]


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
        # Renamed when it is complete: half of one may be taken away as well.
        script = "while read line; do mkdir x && echo EVIL > x/$line && mv x sub/.vscode && echo made $line; done"
        process = (await road.data("command.start", ".", input={"command": ["sh", "-c", script]}))["processId"]
        read: dict[str, Any] = {"warnings": []}
        for number in range(3):
            typed = {"input": {"text": f"{number}\n"}, "options": {"waitFor": f"made {number}", "waitSeconds": 20}}
            assert (await road.data("command.send", process, **typed))["matched"]
            await until(lambda: not (road.root / "sub" / ".vscode").exists())
            with anyio.fail_after(20):
                while len(read["warnings"]) <= number:
                    read = await road.call("command.read", process, options={"waitSeconds": 1})
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
                # Large from its first moment: a scan may take it away while it grows.
                "mkdir made; head -c 70000000 /dev/zero > made/large; mv made .idea; true"
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
