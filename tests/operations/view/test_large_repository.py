"""A view of a large repository: nothing of it is copied, and a program sees all of it, as it would not in a git worktree."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
FILES = 10_000


def make(root: Path, files: int) -> None:
    for number in range(files):
        folder = root / f"d{number // 100}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{number}").write_text(f"{number}\n")
    (root / ".gitignore").write_text("ignored\n")
    git = ["git", "-C", str(root), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *words], check=True)
    (root / "ignored").write_text("not in the repository\n")
    (root / "untracked").write_text("nor this\n")


def stored(place: Path) -> tuple[int, int]:
    """How many names a view holds, and their bytes on disk."""
    found = [Path(folder) / name for folder, names, files in os.walk(place) for name in (*names, *files)]
    return len(found), sum(path.lstat().st_blocks * 512 for path in found)


async def views_of(place: Path, files: int) -> tuple[tuple[int, int], list[str]]:
    """What two views side by side store, and what their programs saw."""
    place.mkdir()
    make(place / "root", files)
    async with Road.open(place, [folder_scope(place / "root", allowedCommands=["*"])]) as road:
        line = "cat ignored untracked; git status --porcelain; echo x > made; echo y >> d0/f1"
        seen, views = [], []
        for _ in range(2):
            run: dict[str, Any] = {"input": {"command": ["sh", "-c", line]}, "options": {"view": True}}
            ran = await road.data("command.run", ".", **run)
            seen.append(ran["stdout"])
            views.append(ran["view"]["viewId"])
            assert (ran["view"]["added"], ran["view"]["changed"]) == (1, 1), ran
        held = stored(road.home / "views")
        await road.data("view.keep", views[0])
        shown = await road.data("view.show", views[1])
        # Both changed the same text in the same way.
        assert {each["path"] for each in shown["changes"]} <= {"made", "d0/f1"}
    return held, seen


async def test_a_view_of_a_large_repository_holds_no_more_than_one_of_a_small_one(tmp_path: Path) -> None:
    small, seen = await views_of(tmp_path / "small", 10)
    large, seen_large = await views_of(tmp_path / "large", FILES)
    assert seen_large == seen == ["not in the repository\nnor this\n?? untracked\n"] * 2
    assert large[0] == small[0] and large[1] <= small[1] + 65_536
