"""A command inside bubblewrap: namespaces of its own, and a root that was staged for it from held descriptors."""

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from computer_linker.computer.facets.processes import GATE_FD, STAGED_PATH, KernelRules
from computer_linker.providers.sandbox.boundary import Confinement, Folder, SpawnPlan
from computer_linker.providers.sandbox.closed_names import ClosedNames
from computer_linker.providers.sandbox.new_root import new_root

_ISOLATED = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent",
    "--cap-drop", "ALL", "--hostname", "sandbox",
)  # fmt: skip
_ROOT = ("--dev-bind", STAGED_PATH, "/", "--proc", "/proc")
"""The staged root as a whole; bubblewrap resolves no other path in it than /proc, which stands at its top in memory."""


def wrap(
    bwrap: str,
    argv: tuple[str, ...],
    confinement: Confinement,
    names: Mapping[Folder, ClosedNames],
    *,
    pty: bool,
) -> SpawnPlan:
    """The plan that runs `argv` inside bubblewrap. The argv itself is passed on untouched."""
    network = () if confinement.network else ("--unshare-net",)
    # Inside its own user namespace root needs this one right to make another; it means nothing outside.
    nesting = ("--cap-add", "CAP_SETFCAP") if confinement.nests and os.geteuid() == 0 else ()
    # A session of its own inside keeps the keys of a pty (Ctrl-C) from ending the sandbox program itself.
    session = (_setsid(), "--ctty") if pty and _setsid() else ()
    line = (
        bwrap, *_ISOLATED, *nesting, *network, *_ROOT, "--chdir", confinement.cwd, "--block-fd", str(GATE_FD),
        "--", *session, *argv,
    )  # fmt: skip
    plan = SpawnPlan(argv=line, gate="argv", wrapped=True, kernel=KernelRules(confine_signals=True))

    plan_root(plan, confinement, names)
    return plan


def plan_root(plan: SpawnPlan, confinement: Confinement, names: Mapping[Folder, ClosedNames]) -> None:
    """Plan the root of the command, or plan it anew after another look at the names in its folders."""
    root = new_root(confinement, names)
    plan.staging, plan.warnings, plan.is_partial = root.staging(), root.warnings, root.is_partial
    plan.closes += root.opened


@lru_cache(maxsize=1)
def _setsid() -> str:
    return next((path for path in ("/usr/bin/setsid", "/bin/setsid") if Path(path).exists()), "")
