"""Runs a command inside bubblewrap: own namespaces, and a root staged from held descriptors."""

import re
from collections.abc import Awaitable, Callable
from functools import lru_cache
from pathlib import Path

from computer_linker.computer.facets.processes import FILTER_FD, GATE_FD, STAGED_PATH, KernelRules
from computer_linker.computer.local.linux.id_range import other_ids
from computer_linker.providers.sandbox.boundary import Confinement, Folder, SpawnPlan
from computer_linker.providers.sandbox.inner_sandbox import confine_inner, real_inside
from computer_linker.providers.sandbox.masks import Masks
from computer_linker.providers.sandbox.new_root import NewRoot, new_root
from computer_linker.system import os

_ISOLATED = (
    "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent",
    "--cap-drop", "ALL", "--hostname", "sandbox",
)  # fmt: skip
_SUPERUSER = tuple(
    argument
    for name in ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID")
    for argument in ("--cap-add", f"CAP_{name}")
)
"""What a superuser's programs need for files and processes of other users; valid only for the ids of the namespace."""
_ROOT = ("--dev-bind", STAGED_PATH, "/", "--proc", "/proc")
"""The staged root as a whole; bubblewrap resolves no other path in it than /proc, which is created in the staged root's tmpfs."""

_LOADS_CODE = re.compile(
    "LD_.*|MALLOC_.*|GLIBC_TUNABLES|GCONV_PATH|GETCONF_DIR|HOSTALIASES|LOCALDOMAIN|LOCPATH|NIS_PATH|NLSPATH|RES_OPTIONS"
    "|RESOLV_HOST_CONF|TZDIR"
)
"""Variables that the C library removes for setuid programs (glibc, sysdeps/generic/unsecvars.h)."""
_SETTINGS = ("sys", "sysrq-trigger", "mtrr", "acpi", "scsi")


def wrap(
    bwrap: str,
    argv: tuple[str, ...],
    confinement: Confinement,
    masks: dict[Folder, Masks],
    env: dict[str, str],
    *,
    pty: bool,
    scan: Callable[[Confinement], Awaitable[dict[Folder, Masks]]],
) -> tuple[SpawnPlan, dict[str, str]]:
    """The plan that runs `argv` inside bubblewrap, and its environment. The argv itself is passed on untouched."""
    # With a range of ids, the launcher's child has entered the user namespace; bubblewrap would map one id.
    users = ("--unshare-user",) if other_ids() is None else _SUPERUSER
    # A network with a gate is a namespace that the launcher's child has entered already.
    network = () if confinement.network or confinement.hosts is not None else ("--unshare-net",)
    # Inside its own user namespace, root needs this capability to create another; it has no effect outside.
    nesting = ("--cap-add", "CAP_SETFCAP") if confinement.nests and os.geteuid() == 0 else ()
    # Its own session inside keeps signals of the pty (Ctrl-C) from ending bubblewrap itself.
    session = (_setsid(), "--ctty") if pty and _setsid() else ()
    kernel = KernelRules(
        confine_signals=True,
        confine_namespaces=not confinement.nests,
        cut_unix_sockets=confinement.cut_unix_sockets,
        confine_sockets=not confinement.network,
        confine_writes=confinement.only_reads,
    )
    line = (
        real_inside(STAGED_PATH) if confinement.nests else bwrap,
        *_ISOLATED, *users, *nesting, *network, *_ROOT, *_no_settings(), "--chdir", confinement.cwd,
        "--block-fd", str(GATE_FD), "--seccomp", str(FILTER_FD), *_set_inside(env), "--", *session, *argv,
    )  # fmt: skip
    plan = SpawnPlan(argv=line, gate="argv", wrapped=True, kernel=kernel)

    def plan_root(masks: dict[Folder, Masks]) -> None:
        root = new_root(confinement, masks)
        if confinement.nests:
            confine_inner(root, bwrap, env, confinement.emptied)
        _plan_root(plan, root)

    async def rescan() -> None:
        plan_root(await scan(confinement))

    plan.rescan = rescan
    plan_root(masks)
    return plan, {name: value for name, value in env.items() if not _LOADS_CODE.fullmatch(name)}


def _set_inside(env: dict[str, str]) -> tuple[str, ...]:
    """Variables set only for the program: bubblewrap itself, which still sees the disk, would load code through them."""
    given = (("--setenv", name, value) for name, value in env.items() if _LOADS_CODE.fullmatch(name))
    return tuple(argument for arguments in given for argument in arguments)


@lru_cache(maxsize=1)
def _no_settings() -> tuple[str, ...]:
    """Arguments that make /proc/sys read-only: it belongs to root, also where root exists only in this namespace.

    bubblewrap treats a folder that is not writable itself as entirely read-only.
    """
    if os.geteuid() != 0:
        return ()
    return tuple(argument for name in _SETTINGS for argument in ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}"))


def _plan_root(plan: SpawnPlan, root: NewRoot) -> None:
    plan.staging = root.staging()
    plan.warnings = root.warnings
    plan.is_partial = root.is_partial
    plan.closes += root.opened


@lru_cache(maxsize=1)
def _setsid() -> str:
    return next((path for path in ("/usr/bin/setsid", "/bin/setsid") if Path(path).exists()), "")
