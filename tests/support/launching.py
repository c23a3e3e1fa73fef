"""The launcher's children that wait for an order, and launches in a root of their own."""

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.processes import Child, Launch, Mount, Staging
from computer_linker.computer.local.linux.processes import LinuxProcesses
from computer_linker.providers.processes.streams import collect
from support.waiting import until


def processes_of(computer: Computer) -> LinuxProcesses:
    """The processes of a computer that is this one."""
    processes = computer.processes
    assert isinstance(processes, LinuxProcesses)
    return processes


async def waiting_child(processes: LinuxProcesses) -> int:
    """The number of the child that takes the next order, once there is one."""
    await until(lambda: processes._ready)
    return processes._ready[0].pid


async def staged_child(processes: LinuxProcesses) -> int:
    """The number of a waiting child that has staged a root ahead, once there is one."""
    found: list[int] = []

    def has_staged() -> bool:
        # The disk is taken away last.
        roots = [(pid, f"/proc/{pid}/root") for pid in processes.waiting_pids()]
        found.extend(pid for pid, root in roots if Path(root, "staged").is_dir() and not os.listdir(f"{root}/disk"))
        return bool(found)

    await until(has_staged)
    return found[0]


@asynccontextmanager
async def processes() -> AsyncIterator[LinuxProcesses]:
    facet = LinuxProcesses()
    try:
        yield facet
    finally:
        await facet.aclose()


def staged(fds: tuple[int, ...], *mounts: Mount, script: str) -> Launch:
    """A shell in a root made of the system's folders and these mounts."""
    system = [
        Mount("link", path, target=str(Path(path).readlink())) if Path(path).is_symlink() else Mount("system", path)
        for path in ("/usr", "/bin", "/lib", "/lib64", "/etc")
    ]
    rooms = [Mount("room", path) for path in ("/proc", "/tmp")] + [Mount("devices", "/dev")]
    line = f"{shutil.which('bwrap')} --unshare-user --cap-drop ALL --dev-bind /staged / --proc /proc --block-fd 9 --"
    return Launch(
        (*line.split(), "/bin/sh", "-c", script),
        {"PATH": "/usr/bin:/bin"},
        gate="argv",
        wrapped=True,
        staging=Staging((*system, *rooms, *mounts), fds, 1 << 24),
    )


async def output_of(child: Child) -> str:
    child.go()
    out, err, _ = await collect(child, limit=200_000)
    return (out + err).decode()


def closed(root: Path, name: str, how: Any = "hidden") -> Mount:
    found = (root / name).lstat()
    return Mount(how, f"{root}/{name}", device=found.st_dev, inode=found.st_ino)


def without_groups(program: str, *arguments: str) -> None:
    """Run a program, which prints "gone" at its end, in a process that has no control groups."""
    tests = Path(__file__).parent.parent
    apart = ["unshare", "--mount", "sh", "-c", 'umount -l /sys/fs/cgroup && exec "$@"', "sh"]
    if subprocess.run([*apart, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("the control groups cannot be taken out of sight here")
    line = [*apart, sys.executable, "-c", program, str(tests), str(tests / "attacks"), *arguments]
    ran = subprocess.run(line, capture_output=True, text=True, timeout=100, check=False)
    assert ran.stdout == "gone\n", ran.stderr[-3000:]
