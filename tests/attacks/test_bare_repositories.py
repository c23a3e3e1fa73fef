"""git takes any folder with HEAD, objects and refs for a repository: file operations make none, and change no trusted part."""

import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
PARTS = ("objects/a", "refs/a", "HEAD")


async def write(road: Road, path: str, **options: Any) -> dict[str, Any]:
    return await road.call("file.write", path, input={"content": "x"}, options={"createParents": True, **options})


@pytest.mark.parametrize("last", range(3))
@pytest.mark.parametrize("folder", ["", "sub/"])
async def test_the_last_part_of_a_repository_is_refused(tmp_path: Path, folder: str, last: int) -> None:
    async with Road.open(tmp_path) as road:
        (road.root / "sub").mkdir()
        parts = [*PARTS[:last], *PARTS[last + 1 :], PARTS[last]]
        for part in parts[:2]:
            assert (await write(road, folder + part))["ok"]
        refused = await write(road, folder + parts[2])
        assert refused["error"]["code"] == "permission_denied" and refused["error"]["details"]["rule"] == "protected"
        assert (
            not (road.root / folder / parts[2]).exists() and not (road.root / folder / parts[2].split("/")[0]).exists()
        )
        assert (await write(road, folder + "config"))["ok"], "it is no repository"


async def test_a_repository_by_its_common_folder_is_refused(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        assert (await write(road, "HEAD"))["ok"]
        assert (await write(road, "commondir"))["error"]["details"]["rule"] == "protected"
        assert (await road.call("file.move", "HEAD", input={"destination": "x"}))["ok"]
        assert (await write(road, "commondir"))["ok"]
        moved = await road.call("file.move", "x", input={"destination": "HEAD"})
        assert moved["error"]["details"]["rule"] == "protected" and (road.root / "x").exists()


@pytest.mark.parametrize("path", ["config", "hooks/post-receive", "HEAD", "config.worktree", "Hooks/post-receive"])
async def test_what_git_trusts_in_a_bare_repository_is_not_written(tmp_path: Path, path: str) -> None:
    async with Road.open(tmp_path) as road:
        subprocess.run(["git", "init", "-q", "--bare", str(road.root / "r.git")], check=True)
        before = (road.root / "r.git" / "config").read_text()
        if path.startswith("Hooks") and not (road.root / "r.git" / "Hooks").exists():
            pytest.skip("names here tell capital letters apart")
        assert (await write(road, f"r.git/{path}"))["error"]["details"]["rule"] == "protected"
        assert (await road.call("file.delete", "r.git/hooks", options={"recursive": True}))["error"]["code"]
        assert (road.root / "r.git" / "config").read_text() == before
        assert not (road.root / "r.git" / "hooks" / "post-receive").exists()


async def test_the_owner_may_allow_it(tmp_path: Path) -> None:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", allowProtected=True)]) as road:
        for part in (*PARTS, "config"):
            assert (await write(road, part))["ok"]


async def test_one_patch_makes_no_repository(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        (road.root / "sub").mkdir()
        for folder in ("", "sub/", "new/"):
            diff = "".join(f"--- /dev/null\n+++ {folder}{part}\n@@ -0,0 +1 @@\n+x\n" for part in (*PARTS, "config"))
            refused = await road.call("file.patch", input={"diff": diff})
            assert not refused["ok"] and refused["error"]["details"]["rule"] == "protected", refused
        assert sorted(path.name for path in road.root.rglob("*")) == ["sub"]


@pytest.mark.parametrize("last", range(3))
async def test_changes_at_the_same_moment_complete_no_repository(tmp_path: Path, last: int) -> None:
    """Found: each of two changes was judged before the other was made."""
    async with Road.open(tmp_path) as road:
        found = []
        for number in range(20):
            folder = f"d{number}"
            parts = [*PARTS[:last], *PARTS[last + 1 :]]
            assert (await write(road, f"{folder}/{PARTS[last]}"))["ok"]
            answers: list[dict[str, Any]] = []

            async def one(part: str, folder: str = folder, answers: list[dict[str, Any]] = answers) -> None:
                answers.append(await write(road, f"{folder}/{part}"))

            async with anyio.create_task_group() as group:
                for part in parts:
                    group.start_soon(one, part)
            assert sorted(answer["ok"] for answer in answers) == [False, True], answers
            found += [{"HEAD", "objects", "refs"} <= {path.name for path in (road.root / folder).iterdir()}]
        assert not any(found)
