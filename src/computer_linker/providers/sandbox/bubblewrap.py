"""A command inside bubblewrap: a world of its own, built from read-only system folders and the scope's roots."""

import os
import subprocess
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from computer_linker.computer.facets.processes import FIRST_KEPT_FD, GATE_FD, KernelRules
from computer_linker.providers.sandbox.boundary import Closed, Confinement, Folder, SpawnPlan
from computer_linker.providers.sandbox.masks import Masks
from computer_linker.providers.sandbox.places import (
    SYSTEM_FACTS,
    depth,
    home,
    secret_system_files,
    secret_system_folders,
    system_folders,
    tool_folders,
)
from computer_linker.providers.sandbox.steps import open_below

_ISOLATED = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent",
    "--cap-drop", "ALL", "--hostname", "sandbox",
)  # fmt: skip
MAX_CLOSED = 200
"""Each takes a descriptor, of which one packet to the launcher carries 253."""


@dataclass(slots=True)
class _World:
    """Mounts in the making: each has a place in the order, so that what lies deeper is mounted later."""

    mounts: list[tuple[int, int, tuple[str, ...]]] = field(default_factory=list)
    fds: list[int] = field(default_factory=list)
    opened: list[int] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    is_partial: bool = False

    def add(self, path: str, rank: int, *arguments: str) -> None:
        self.mounts.append((depth(path), rank, arguments))

    def keep(self, fd: int) -> str:
        self.fds.append(fd)
        return str(FIRST_KEPT_FD + len(self.fds) - 1)

    def arguments(self) -> list[str]:
        ordered = sorted(self.mounts, key=lambda mount: mount[:2])
        return [argument for _, _, arguments in ordered for argument in arguments]


def wrap(
    bwrap: str,
    argv: tuple[str, ...],
    confinement: Confinement,
    masks: dict[Folder, Masks],
    *,
    pty: bool,
) -> SpawnPlan:
    """The plan that runs `argv` inside bubblewrap. The argv itself is passed on untouched."""
    world = _World()
    try:
        _system(world, confinement)
        for folder in confinement.readable:
            _root(world, folder, "--ro-bind-fd")
            _close_names(world, folder, masks.get(folder), confinement)
        for folder in confinement.writable:
            _root(world, folder, "--bind-fd")
            _close_names(world, folder, masks.get(folder), confinement)
        for folder in confinement.own:
            world.add(folder.path, 6, "--bind-fd", world.keep(folder.fd), folder.path)
        for path in confinement.hidden:
            if _is_shown(path, confinement):
                world.add(path, 5, "--perms", "0555", "--tmpfs", path)
    except BaseException:
        for fd in world.opened:
            os.close(fd)
        raise
    network = () if confinement.network else ("--unshare-net",)
    # Inside its own user namespace root needs this one right to make another; it means nothing outside.
    nesting = ("--cap-add", "CAP_SETFCAP") if confinement.nests and os.geteuid() == 0 else ()
    # A session of its own inside keeps the keys of a pty (Ctrl-C) from ending the sandbox program itself.
    session = (_setsid(), "--ctty") if pty and _setsid() else ()
    line = (
        bwrap, *_ISOLATED, *nesting, *network, *world.arguments(), "--chdir", confinement.cwd, "--block-fd", str(GATE_FD),
        "--", *session, *argv,
    )  # fmt: skip
    return SpawnPlan(
        argv=line,
        fds=tuple(world.fds),
        gate="argv",
        wrapped=True,
        kernel=KernelRules(confine_signals=True),
        warnings=world.warnings,
        is_partial=world.is_partial,
        closes=world.opened,
    )


def _system(world: _World, confinement: Confinement) -> None:
    covers_all = any(folder.path == "/" for folder in (*confinement.readable, *confinement.writable))
    for path, link in system_folders() if not covers_all else ():
        world.add(path, 0, *(("--symlink", link) if link else ("--ro-bind", path)), path)
    for path in SYSTEM_FACTS:
        world.add(path, 1, "--ro-bind-try", path, path)
    world.add("/proc", 1, "--proc", "/proc")
    world.add("/dev", 1, "--dev", "/dev")
    for path in ("/tmp", "/var/tmp", home()):  # noqa: S108  # the sandbox's own
        world.add(path, 1, "--size", _room(), "--tmpfs", path)
    for path in secret_system_files():
        world.add(path, 2, "--ro-bind", "/dev/null", path)
    for path in secret_system_folders():
        world.add(path, 2, "--perms", "0555", "--tmpfs", path)
    for path in dict.fromkeys((*tool_folders(), *confinement.programs)):
        world.add(path, 2, "--ro-bind-try", path, path)


@lru_cache(maxsize=1)
def _room() -> str:
    """How much a command may put into each folder of its own, which is memory: what it fills, the machine lacks."""
    return str(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 8)


def _root(world: _World, folder: Folder, option: str) -> None:
    world.add(folder.path, 3, option, world.keep(folder.fd), folder.path)
    if folder.alias:
        world.add(folder.alias, 3, "--symlink", folder.path, folder.alias)


def _close_names(world: _World, folder: Folder, masks: Masks | None, confinement: Confinement) -> None:
    """Mount what must stay closed over itself, or over with nothing."""
    if masks is None:
        return
    world.is_partial = world.is_partial or masks.is_partial
    world.warnings += masks.warnings
    for each in masks.closed:
        path = "/".join((folder.path.rstrip("/"), *each.parts)) or "/"
        if not any(path == place or path.startswith(place + "/") for place in confinement.hidden):
            _close(world, folder, each, path)


def _close(world: _World, folder: Folder, each: Closed, path: str) -> None:
    if each.how == "hidden":
        world.add(path, 4, *(("--perms", "0555", "--tmpfs") if each.is_folder else ("--ro-bind", "/dev/null")), path)
        return
    fd = _opened(folder, each)
    if fd is None:
        world.is_partial = True
        world.warnings.append(f"{'/'.join(each.parts)} changed while the command was started, and is not closed off.")
        return
    world.opened.append(fd)
    world.add(path, 4, "--bind-fd" if each.how == "held" else "--ro-bind-fd", world.keep(fd), path)


def _opened(folder: Folder, each: Closed) -> int | None:
    """The very object that was looked at; None when another one stands there by now."""
    try:
        above = open_below(folder.fd, each.parts[:-1])
    except OSError:
        return None
    try:
        fd = os.open(each.parts[-1] if each.parts else ".", os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    except OSError:
        return None
    finally:
        os.close(above)
    about = os.fstat(fd)
    if (about.st_dev, about.st_ino) == (each.device, each.inode):
        return fd
    os.close(fd)
    return None


def _is_shown(path: str, confinement: Confinement) -> bool:
    shown = (*(folder.path for folder in (*confinement.writable, *confinement.readable)), *confinement.programs)
    within = any(path == place or path.startswith(place.rstrip("/") + "/") for place in shown)
    return within and Path(path).is_dir()


@lru_cache(maxsize=1)
def _setsid() -> str:
    return next((path for path in ("/usr/bin/setsid", "/bin/setsid") if Path(path).exists()), "")


@lru_cache(maxsize=4)
def binds_by_descriptor(bwrap: str) -> bool:
    """True when this bubblewrap binds a held descriptor, so that a swapped path cannot redirect a mount."""
    told = subprocess.run([bwrap, "--help"], capture_output=True, text=True, timeout=10, check=False)
    return "--ro-bind-fd" in told.stdout
