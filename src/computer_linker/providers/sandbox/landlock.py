"""A command under Landlock and seccomp: no private view of the disk, but the kernel refuses what was not granted."""

import shutil
import tempfile

from computer_linker.computer.facets.processes import KernelRules
from computer_linker.providers.sandbox.boundary import Confinement, SpawnPlan
from computer_linker.providers.sandbox.places import SYSTEM, SYSTEM_FACTS, held_places, tool_folders

_READ = (*SYSTEM, *SYSTEM_FACTS, "/proc", "/dev")


def wrap(argv: tuple[str, ...], confinement: Confinement) -> tuple[SpawnPlan, dict[str, str]]:
    """The plan, and the variables that send temporary files to a private folder (it is gone afterwards)."""
    private = tempfile.mkdtemp(prefix="computer-linker-")
    tools = held_places((*tool_folders(), *confinement.programs))
    fds = [folder.fd for folder in (*confinement.writable, *confinement.own, *confinement.readable)] + tools
    writable = len(confinement.writable) + len(confinement.own)
    plan = SpawnPlan(
        argv=argv,
        closes=tools,
        fds=tuple(fds),
        cwd_fd=confinement.cwd_fd,
        kernel=KernelRules(
            read=_READ,
            write=(private,),
            root_fds=tuple(range(writable)),
            read_root_fds=tuple(range(writable, len(fds))),
            confine_files=True,
            cut_network=not confinement.network,
            confine_signals=True,
        ),
        releases=[lambda: shutil.rmtree(private, ignore_errors=True)],
    )
    return plan, {"TMPDIR": private, "HOME": private}
