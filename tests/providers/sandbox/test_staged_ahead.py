"""Roots that are staged before their command is known: used once, and only while everything in them is as it was."""

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from computer_linker.computer.facets.processes import Launch, Mount, NamesChanged
from computer_linker.computer.local.linux.processes import LinuxProcesses
from support.launching import closed, output_of, processes, processes_of, staged, staged_child
from support.road import Road, folder_scope
from support.waiting import DEADLINE_S, until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]
CANARY = "canary-of-a-closed-name"


@asynccontextmanager
async def held(root: Path) -> AsyncIterator[tuple[LinuxProcesses, int]]:
    fd = os.open(root, os.O_PATH)
    try:
        async with processes() as facet:
            yield facet, fd
    finally:
        os.close(fd)


def open_files() -> list[os.stat_result]:
    found = []
    for each in os.listdir("/proc/self/fd"):
        # The listing has a descriptor of its own, which is closed by now.
        with suppress(OSError):
            found.append(os.fstat(int(each)))
    return found


def showing(fd: int, root: Path, *mounts: Mount, script: str) -> Launch:
    return staged((fd,), Mount("shown", str(root)), *mounts, script=script)


async def test_the_next_command_gets_the_root_that_was_staged_ahead_and_a_fresh_one_each_time(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(CANARY)
    script = f"(ls /tmp/left; echo > /tmp/left; cat {tmp_path}/.env) 2> /dev/null; echo done"
    async with held(tmp_path) as (facet, fd):
        launch = showing(fd, tmp_path, closed(tmp_path, ".env"), script=script)
        pids = []
        for _ in range(3):
            child = await facet.spawn(launch)
            pids.append(child.pid)
            # Not even a name of an earlier command is left.
            assert await output_of(child) == "done\n"
            pids.append(await staged_child(facet))
    assert pids[1::2][:2] == pids[2::2] and len(set(pids)) == 4


def replaced(root: Path) -> None:
    (root / "new").write_text(CANARY)
    (root / "new").rename(root / "sub" / ".env")


def made_anew(root: Path) -> None:
    (root / "sub" / ".env").unlink()
    (root / "sub" / ".env").write_text(CANARY)


def moved_and_made(root: Path) -> None:
    (root / "sub" / ".env").rename(root / "sub" / "moved")
    (root / "sub" / ".env").write_text(CANARY)


def moved_above(root: Path) -> None:
    (root / "sub").rename(root / "other")
    (root / "sub").mkdir()
    (root / "sub" / ".env").write_text(CANARY)


def appeared(root: Path) -> None:
    (root / "later").write_text(CANARY)


def linked(root: Path) -> None:
    (root / "sub" / ".env").rename(root / "kept")
    (root / "sub" / ".env").symlink_to(root / "kept")


CHANGES = [replaced, made_anew, moved_and_made, moved_above, appeared, linked]


@pytest.mark.parametrize("change", CHANGES)
async def test_a_name_that_changes_after_staging_starts_nothing_in_that_root(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / ".env").write_text(CANARY)
    async with held(tmp_path) as (facet, fd):
        names = (closed(tmp_path, "sub", "held"), closed(tmp_path, "sub/.env"))
        # One that is missing when the root is staged.
        later = Mount("hidden", f"{tmp_path}/later", device=1, inode=1)
        script = f"touch {tmp_path}/ran; cat {tmp_path}/later {tmp_path}/sub/.env {tmp_path}/kept"
        launch = showing(fd, tmp_path, *names, later, script=script)
        await output_of(await facet.spawn(launch))
        pid = await staged_child(facet)
        (tmp_path / "ran").unlink()
        change(tmp_path)
        told = ""
        # The service's look is as old as the staged root here, so what is staged anew refuses as well, unless the file
        # that was made anew got the number of the old one: then it is closed.
        try:
            child = await facet.spawn(launch)
            assert child.pid != pid
            told = await output_of(child)
        except NamesChanged:
            assert not (tmp_path / "ran").exists()
        assert CANARY not in told
        assert pid not in facet.waiting_pids()


@pytest.mark.parametrize("change", CHANGES)
async def test_a_closed_name_stays_closed_to_the_command_after_it_changed(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / ".env").write_text(CANARY)
    scope = folder_scope(
        root, allowedCommands=["*"], sandbox="required", deniedPaths=["later", "kept", "sub/moved", "other"]
    )
    script = f"cat {root}/later {root}/sub/.env {root}/kept; ls {root} | sort | tr '\\n' ' '"
    async with Road.open(tmp_path, [scope]) as road:
        for _ in range(2):
            await road.data("command.run", ".", input={"command": ["sh", "-c", script]})
        await staged_child(processes_of(road.app.computer))
        change(root)
        ran = await road.data("command.run", ".", input={"command": ["sh", "-c", script]})
        assert "sub" in ran["stdout"] and CANARY not in ran["stdout"] + ran["stderr"]


async def test_a_root_of_other_rules_is_not_used(tmp_path: Path) -> None:
    async with held(tmp_path) as (facet, fd):
        script = f"touch {tmp_path}/written; echo $?"
        launch = showing(fd, tmp_path, script=script)
        assert (await output_of(await facet.spawn(launch))).endswith("0\n")
        pid = await staged_child(facet)
        (tmp_path / "written").unlink()
        assert launch.staging is not None
        mounts = tuple(replace(each, read_only=each.kind == "shown") for each in launch.staging.mounts)
        child = await facet.spawn(replace(launch, staging=replace(launch.staging, mounts=mounts)))
        assert child.pid != pid and "Read-only" in await output_of(child)
        assert not (tmp_path / "written").exists()


async def test_a_folder_that_took_the_place_of_the_root_is_staged_anew(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    async with held(root) as (facet, fd):
        launch = showing(fd, root, script=f"ls {root}")
        await output_of(await facet.spawn(launch))
        pid = await staged_child(facet)
        root.rename(tmp_path / "old")
        root.mkdir()
        (root / "of-the-new-one").touch()
        again = os.open(root, os.O_PATH)
        try:
            child = await facet.spawn(showing(again, root, script=f"ls {root}"))
        finally:
            os.close(again)
        assert child.pid != pid and await output_of(child) == "of-the-new-one\n"


_MOUNTED_LATER = """
import os, subprocess, sys
from pathlib import Path
import anyio
from support.launching import output_of, processes, staged, staged_child
from computer_linker.computer.facets.processes import Mount

async def main() -> None:
    root, disk = Path(sys.argv[1]), sys.argv[2]
    fd = os.open(root, os.O_PATH)
    launch = staged((fd,), Mount("shown", str(root)), script=f"ls {root}/sub")
    async with processes() as facet:
        print(await output_of(await facet.spawn(launch)), end="")
        pid = await staged_child(facet)
        subprocess.run(["mount", "--bind", disk, root / "sub"], check=True)
        child = await facet.spawn(launch)
        print(child.pid == pid, await output_of(child), end="")

anyio.run(main)
"""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare, for a mount in a namespace of the test's own")
def test_a_disk_that_is_mounted_after_staging_is_in_the_root(tmp_path: Path) -> None:
    root, disk = tmp_path / "root", tmp_path / "disk"
    for name in (root / "sub" / "covered-by-the-disk", disk / "on-the-disk"):
        name.mkdir(parents=True)
    argv = ["unshare", "-rm", sys.executable, "-c", _MOUNTED_LATER, str(root), str(disk)]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    ran = subprocess.run(argv, capture_output=True, text=True, check=False, env=env, timeout=DEADLINE_S)
    if "unshare:" in ran.stderr:
        pytest.skip(ran.stderr)
    assert ran.stdout.splitlines() == ["covered-by-the-disk", "False on-the-disk"], ran.stderr


async def test_a_staged_root_is_given_up_after_a_while_and_keeps_no_descriptor(tmp_path: Path) -> None:
    async with held(tmp_path) as (facet, fd):
        facet.staged_s = 0.3
        launch = showing(fd, tmp_path, script="true")
        for _ in range(2):
            await output_of(await facet.spawn(launch))
            pid = await staged_child(facet)
        await until(lambda: pid not in facet.waiting_pids() and not Path(f"/proc/{pid}").exists())
        ours = os.fstat(fd)
        assert [each for each in open_files() if os.path.samestat(each, ours)] == [ours]
