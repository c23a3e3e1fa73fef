"""Runs a command under Landlock and seccomp: no private view of the disk, but the kernel refuses what was not granted."""

import tempfile
from pathlib import Path

from computer_linker.computer.facets.processes import KernelRules
from computer_linker.providers.own_folders import remove_later
from computer_linker.providers.sandbox.boundary import Confinement, SpawnPlan
from computer_linker.providers.sandbox.places import SYSTEM_FACTS, held_places, readable_system, tool_folders
from computer_linker.system import os

_READ = (*SYSTEM_FACTS, "/proc")
_LISTED = ("/dev", "/etc")
"""Of devices only the harmless ones can be opened: others are terminals, cameras, keyboards and disks."""


def wrap(argv: tuple[str, ...], confinement: Confinement) -> tuple[SpawnPlan, dict[str, str]]:
    """The plan, and the variables that send temporary files to a private folder, which is removed afterwards."""
    private = tempfile.mkdtemp(prefix="computer-linker-")
    tools = held_places((*tool_folders(), *confinement.programs))
    written = [*confinement.writable, *(folder for folder in confinement.own if not folder.only_read)]
    only_read = [*confinement.readable, *(folder for folder in confinement.own if folder.only_read)]
    fds = [folder.fd for folder in (*written, *only_read)] + tools
    writable = len(written)
    cwd_fd = confinement.cwd_fd
    if cwd_fd is None:
        cwd_fd = os.open(private, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    plan = SpawnPlan(
        argv=argv,
        fds=tuple(fds),
        cwd_fd=cwd_fd,
        kernel=KernelRules(
            read=(*readable_system(), *_READ),
            listed=_LISTED,
            write=(private,),
            root_fds=tuple(range(writable)),
            read_root_fds=tuple(range(writable, len(fds))),
            confine_files=True,
            cut_network=not confinement.network,
            confine_signals=True,
        ),
        closes=tools if cwd_fd == confinement.cwd_fd else [*tools, cwd_fd],
        releases=[lambda: remove_later(Path(private))],
    )
    return plan, {"TMPDIR": private, "HOME": private}
