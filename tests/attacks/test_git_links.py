"""Git operations as a way to closed files: links and borrowed objects in a repository that a command made."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from computer_linker.computer.local.linux.kernel_rules import landlock_abi
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
CANARY = "CANARY-93ab"
WHO = ("-c", "user.name=a", "-c", "user.email=a@example.org")


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *WHO, *args], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def repository(folder: Path, name: str = "a.txt", text: str = "one\n") -> Path:
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    (folder / name).write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", text.strip())
    return folder / ".git"


def packed_refs(made: Path, _private: Path) -> None:
    (made / "packed-refs").symlink_to("../../.env")


def shallow(made: Path, _private: Path) -> None:
    (made / "shallow").symlink_to("../../.env")


def grafts(made: Path, _private: Path) -> None:
    (made / "info" / "grafts").symlink_to("../../../.env")


def merge_head(made: Path, _private: Path) -> None:
    (made / "MERGE_HEAD").symlink_to("../../.env")


def index(made: Path, private: Path) -> None:
    (made / "index").unlink()
    (made / "index").symlink_to("../../private/.git/index")
    fan_out(made, private)


def branch(made: Path, _private: Path) -> None:
    (made / "refs" / "heads" / "taken").symlink_to("../../../../private/.git/refs/heads/main")


def fan_out(made: Path, private: Path) -> None:
    branch(made, private)
    for folder in (private / ".git" / "objects").iterdir():
        if not (made / "objects" / folder.name).exists():
            (made / "objects" / folder.name).symlink_to(f"../../../private/.git/objects/{folder.name}")


def loose_objects(made: Path, private: Path) -> None:
    """No name that the service looks at is a link: the kernel alone refuses."""
    (made / "refs" / "heads" / "taken").write_text(git(private, "rev-parse", "HEAD") + "\n")
    for found in (private / ".git" / "objects").glob("??/*"):
        place = made / "objects" / found.parent.name
        place.mkdir(exist_ok=True)
        if not (place / found.name).exists():
            (place / found.name).symlink_to(f"../../../../private/.git/objects/{found.parent.name}/{found.name}")


def borrowed_twice(made: Path, private: Path) -> None:
    (made / "refs" / "heads" / "taken").write_text(git(private, "rev-parse", "HEAD") + "\n")
    middle = repository(made.parent.parent / "middle")
    (middle / "objects" / "info" / "alternates").write_text("../../../private/.git/objects\n")
    (made / "objects" / "info" / "alternates").write_text("../../../middle/.git/objects\n")


WAYS = (packed_refs, shallow, grafts, merge_head, index, branch, fan_out, loose_objects, borrowed_twice)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_no_git_operation_shows_what_the_scope_closes(tmp_path: Path, way: Callable[[Path, Path], None]) -> None:
    if way is loose_objects and landlock_abi() < 1:
        pytest.skip("this kernel has no Landlock")
    root = tmp_path / "root"
    root.mkdir()
    (root / ".env").write_text(f"PASSWORD={CANARY}\nSECOND={CANARY}\n")
    repository(root / "private", f"{CANARY}.txt", f"{CANARY}\n")
    way(repository(root / "made"), root / "private")
    async with Road.open(tmp_path, [folder_scope(root, deniedPaths=["private"])]) as road:
        answers = [
            await road.call("git.status", "made"),
            await road.call("git.log", "made"),
            await road.call("git.log", "made", options={"ref": "taken"}),
            await road.call("git.show", "made", input={"ref": "taken"}),
            await road.call("git.diff", "made"),
            await road.call("git.diff", "made", options={"staged": True}),
            await road.call("git.diff", "made", options={"base": "taken"}),
            await road.call("git.worktree_list", "made"),
            await road.call("git.commit", "made", input={"message": "m"}),
        ]
    assert CANARY not in json.dumps(answers)


async def test_objects_borrowed_inside_the_scope_are_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    repository(root / "lender")
    subprocess.run(["git", "clone", "--quiet", "--shared", str(root / "lender"), str(root / "made")], check=True)
    async with Road.open(tmp_path) as road:
        assert [one["subject"] for one in (await road.data("git.log", "made"))["commits"]] == ["one"]
        assert "+one" in (await road.data("git.show", "made", input={"ref": "HEAD"}))["diff"]


async def test_a_work_tree_shows_no_denied_file_at_another_place(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "private").mkdir()
    (root / "private" / "f.txt").write_text(CANARY)
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "all")
    async with Road.open(tmp_path, [folder_scope(root, deniedPaths=["private"])]) as road:
        refused = await road.call("git.worktree_create", ".", input={"path": "copy", "branch": "b"})
    assert refused["error"]["code"] == "permission_denied" and refused["error"]["details"]["rule"] == "denied"
    assert not os.path.lexists(root / "copy") and git(root, "branch", "--list", "b") == ""


async def test_a_work_tree_is_made_where_the_rule_holds_there_too(tmp_path: Path) -> None:
    root = tmp_path / "root"
    repository(root, "private.txt", CANARY)
    async with Road.open(tmp_path, [folder_scope(root, deniedPaths=["*private.txt"])]) as road:
        made = await road.call("git.worktree_create", ".", input={"path": "copy", "branch": "b"})
        read = await road.call("file.read", "copy/private.txt")
    assert made["ok"], made
    assert read["error"]["code"] == "permission_denied"
