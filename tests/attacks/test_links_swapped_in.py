"""A file swapped for a link while a program of the service (git, ripgrep) reads or writes the folder by names.

A command can exchange its own names as often as it likes, and a link of it may name what the scope closes. Each case hit within
a few dozen calls before links were refused to these programs.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from attacks.test_races import swapping
from computer_linker.computer.local.linux.kernel_rules import landlock_abi
from support.repositories import git
from support.road import Road, folder_scope

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="exchanges names by renameat2")]
SECRET = "CANARY-5d20-secret"
SECONDS = 6.0
_REPLACES_NEW_FOLDERS = """
import ctypes, os, sys
libc, place, target = ctypes.CDLL(None), sys.argv[1], sys.argv[2]
os.chdir(place)
print("ready", flush=True)
while True:
    for name in os.listdir("."):
        if name.startswith("tree") and not os.path.islink(name) and not os.path.lexists("link-" + name):
            os.symlink(target, "link-" + name)
            for _ in range(int(name[4:]) % 9 * 400):
                os.path.lexists(name + "/.git")
            libc.renameat2(-100, name.encode(), -100, b"link-" + name.encode(), 2)
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one file that is shorter than a secret beside it."""
    root = tmp_path / "root"
    (root / "part").mkdir(parents=True)
    git(root, "init", "-q")
    for name in ("a.txt", "part/a.txt"):
        (root / name).write_text("committed\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    (root / ".env").write_text(f"{SECRET}\n")
    return root


def lay_link(folder: Path, target: str) -> tuple[Path, Path]:
    """A changed file of the folder, and a link that is exchanged with it."""
    (folder / "a.txt").write_text("x" * len(SECRET))
    (folder / "link").symlink_to(target)
    return folder / "a.txt", folder / "link"


async def answers(road: Road, op: str, **parts: Any) -> list[str]:
    """What one operation answers, called again and again for some seconds."""
    found, end = [], time.monotonic() + SECONDS
    while time.monotonic() < end:
        found.append(json.dumps(await road.call(op, ".", **parts)))
    return found


async def test_a_diff_has_nothing_of_a_closed_file(tmp_path: Path, repository: Path) -> None:
    async with Road.open(tmp_path, [folder_scope(repository)]) as road:
        with swapping(*lay_link(repository, ".env")):
            assert not any(SECRET in answer for answer in await answers(road, "git.diff"))
        (repository / "link").unlink()
        (repository / "a.txt").unlink(missing_ok=True)
        (repository / "a.txt").write_text("now\n")
        assert "+now" in (await road.data("git.diff", "."))["diff"]


@pytest.mark.skipif(landlock_abi() < 1, reason="this kernel has no Landlock")
async def test_a_diff_of_a_part_has_nothing_from_outside_of_it(tmp_path: Path, repository: Path) -> None:
    """The scope is a folder of the repository; what lies above it is none of its business."""
    (repository / "private.txt").write_text(f"{SECRET}\n")
    part = repository / "part"
    async with Road.open(tmp_path, [folder_scope(part)]) as road:
        with swapping(*lay_link(part, "../private.txt")):
            assert not any(SECRET in answer for answer in await answers(road, "git.diff"))
        (part / "link").unlink()
        (part / "a.txt").unlink(missing_ok=True)
        (part / "a.txt").write_text("now\n")
        assert "+now" in (await road.data("git.diff", "."))["diff"]


async def test_a_search_has_nothing_of_a_closed_file(tmp_path: Path, repository: Path) -> None:
    async with Road.open(tmp_path, [folder_scope(repository)]) as road:
        with swapping(*lay_link(repository, ".env")):
            found = await answers(
                road, "file.search", input={"query": "CANARY.*|x+"}, options={"contextBefore": 1, "contextAfter": 1}
            )
            assert not any(SECRET in answer for answer in found)


async def test_what_is_staged_has_nothing_of_a_closed_file(tmp_path: Path, repository: Path) -> None:
    """An object that git stored of it would stay, and commands read the repository's objects."""
    async with Road.open(tmp_path, [folder_scope(repository)]) as road:
        with swapping(*lay_link(repository, ".env")):
            await answers(road, "git.stage", input={"paths": ["a.txt"]})
    for line in git(repository, "cat-file", "--batch-all-objects", "--batch-check").splitlines():
        name, kind, _ = line.split(" ")
        assert kind != "blob" or SECRET not in git(repository, "cat-file", "blob", name)


@contextmanager
def replacing_new_folders(place: Path, target: str) -> Iterator[None]:
    child = subprocess.Popen([sys.executable, "-c", _REPLACES_NEW_FOLDERS, str(place), target], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        yield
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


async def test_a_new_work_tree_writes_no_hooks(tmp_path: Path, repository: Path) -> None:
    """Found: a tracked `pre-commit` was checked out into .git/hooks, and the owner's next commit ran it."""
    (repository / "pre-commit").write_text("#!/bin/sh\n")
    (repository / "pre-commit").chmod(0o755)
    for number in range(200):
        (repository / f"file{number}").write_text("x")
    git(repository, "add", "--", "pre-commit", *(f"file{number}" for number in range(200)))
    git(repository, "commit", "-qm", "second")
    hooks = repository / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    before = sorted(each.name for each in hooks.iterdir())
    async with Road.open(tmp_path, [folder_scope(repository)]) as road:
        with replacing_new_folders(repository, ".git/hooks"):
            for number in range(36):
                wanted = {"path": f"tree{number}", "branch": f"branch{number}"}
                await road.call("git.worktree_create", ".", input=wanted)
                assert sorted(each.name for each in hooks.iterdir()) == before
        made = await road.data("git.worktree_create", ".", input={"path": "other", "branch": "other"})
    assert "other" in [each["path"] for each in made["worktrees"]]
    assert (repository / "other" / "pre-commit").exists()
