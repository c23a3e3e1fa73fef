"""A scope that contains /proc opens no process: environments and memory hold the owner's keys."""

import os
from pathlib import Path

import pytest

from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio

SECRET = "G_SECRET_OF_THIS_TEST"


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET, "s3cr3t")


def whole_disk() -> dict[str, object]:
    scope = folder_scope(Path("/"), "disk", allowedCommands=["*"])
    scope["capabilities"] = ["fs:read", "search:read", "artifact:read", "artifact:write", "command:run", "git:read"]
    return scope


PLACES = ["proc/self", "proc/{pid}", "proc/thread-self", "proc/{pid}/task/{pid}", "proc"]
FILES = ["proc/self/environ", "proc/{pid}/environ", "proc/{pid}/maps", "proc/{pid}/mem", "proc/{pid}/cmdline"]


@pytest.mark.parametrize("place", FILES)
async def test_no_file_of_a_process_is_opened(tmp_path: Path, place: str) -> None:
    path = place.format(pid=os.getpid())
    async with Road.open(tmp_path, [whole_disk()]) as road:
        for op in ("file.read", "file.stat", "artifact.attach"):
            assert await road.code(op, path, scope="disk") == "permission_denied", op
        for query in ("PATH=", "Name:", "r-xp"):
            assert await road.code("file.search", path, scope="disk", input={"query": query}) == "permission_denied"


@pytest.mark.parametrize("place", PLACES)
async def test_no_folder_of_a_process_is_listed_or_searched(tmp_path: Path, place: str) -> None:
    path = place.format(pid=os.getpid())
    async with Road.open(tmp_path, [whole_disk()]) as road:
        for op, given in (("file.list", None), ("file.tree", None), ("file.search", {"query": "Name:"})):
            assert await road.code(op, path, scope="disk", input=given) == "permission_denied", op
        top = await road.data("file.list", ".", scope="disk")
        assert all(entry["name"] != "proc" for entry in top["entries"]), top


@pytest.mark.parametrize("root", ["/proc", "/proc/self", "/proc/{pid}/task"])
async def test_a_scope_of_processes_opens_nothing(tmp_path: Path, root: str) -> None:
    place = Path(root.format(pid=os.getpid()))
    async with Road.open(tmp_path, [folder_scope(place, "processes")]) as road:
        for op, target in (("file.list", "."), ("file.read", "environ"), ("file.read", f"{os.getpid()}/environ")):
            assert await road.code(op, target, scope="processes") == "path_out_of_scope"


async def test_a_link_into_proc_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "up").symlink_to(os.path.relpath("/proc", tmp_path / "root"))
    async with Road.open(tmp_path, [whole_disk()]) as road:
        path = f"{str(road.root)[1:]}/up/{os.getpid()}/environ"
        assert await road.code("file.read", path, scope="disk") == "permission_denied"
        found = await road.call("file.search", path, scope="disk", input={"query": SECRET})
        assert not found["ok"], found


async def test_a_name_like_it_in_a_project_is_open(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        (road.root / "proc").mkdir()
        (road.root / "proc" / "notes.txt").write_text("mine")
        assert (await road.data("file.read", "proc/notes.txt"))["content"] == "mine"


async def test_a_command_of_such_a_scope_has_a_proc_of_its_own(tmp_path: Path) -> None:
    async with Road.open(tmp_path, [whole_disk()]) as road:
        given = {"command": ["cat", "/proc/self/status", f"/proc/{os.getpid()}/environ"]}
        ran = await road.call("command.run", str(tmp_path)[1:], scope="disk", input=given)
        assert "s3cr3t" not in str(ran)
        if "bubblewrap" in str(ran.get("data", {}).get("boundary", "")):
            assert "Name:" in ran["data"]["stdout"], ran
