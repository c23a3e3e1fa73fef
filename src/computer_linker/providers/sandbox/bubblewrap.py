"""A command inside bubblewrap: a world of its own, built from read-only system folders and the scope's roots."""

import os
import subprocess
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from computer_linker.computer.facets.processes import FIRST_KEPT_FD, GATE_FD, KernelRules
from computer_linker.providers.sandbox.boundary import Confinement, Folder, SpawnPlan
from computer_linker.providers.sandbox.looks import Looks, open_below
from computer_linker.providers.sandbox.masks import masks_of
from computer_linker.providers.sandbox.placeholders import Held, Placeholders
from computer_linker.providers.sandbox.places import (
    SYSTEM_FACTS,
    depth,
    home,
    secret_system_files,
    secret_system_folders,
    system_folders,
    tool_folders,
)

_ISOLATED = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent",
    "--cap-drop", "ALL", "--hostname", "sandbox",
)  # fmt: skip
_MAX_FDS = 40


@dataclass(slots=True)
class _World:
    """Mounts in the making: each has a place in the order, so that what lies deeper is mounted later."""

    looks: Looks
    mounts: list[tuple[int, int, tuple[str, ...]]] = field(default_factory=list)
    fds: list[int] = field(default_factory=list)
    opened: list[int] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
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
    placeholders: Placeholders,
    looks: Looks,
    *,
    pty: bool,
) -> SpawnPlan:
    """The plan that runs `argv` inside bubblewrap. The argv itself is passed on untouched."""
    world = _World(looks)
    try:
        _system(world, confinement)
        for folder in confinement.readable:
            _root(world, folder, "--ro-bind-fd")
            _close_names(world, folder, placeholders, is_writable=False)
        for folder in confinement.writable:
            _root(world, folder, "--bind-fd")
            _close_names(world, folder, placeholders, is_writable=True)
        for folder in confinement.own:
            world.add(folder.path, 6, "--bind-fd", world.keep(folder.fd), folder.path)
        for path in confinement.hidden:
            if _is_shown(path, confinement):
                world.add(path, 5, "--perms", "0555", "--tmpfs", path)
    except BaseException:
        placeholders.let_go(world.held)
        for fd in world.opened:
            os.close(fd)
        raise
    network = () if confinement.network else ("--unshare-net",)
    # Inside its own user namespace root needs this one right to make another; it means nothing outside.
    nesting = ("--cap-add", "CAP_SETFCAP") if confinement.nests and os.geteuid() == 0 else ()
    # A session of its own inside keeps the keys of a pty (Ctrl-C) from ending the sandbox program itself.
    session = (_setsid(), "--ctty") if pty and _setsid() else ()
    line = (
        bwrap, *_ISOLATED, *nesting, *network, *world.arguments(), *_sealed(confinement), "--chdir", confinement.cwd,
        "--block-fd", str(GATE_FD), "--", *session, *argv,
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
        releases=[lambda: placeholders.let_go(world.held)],
    )


def _system(world: _World, confinement: Confinement) -> None:
    covers_all = any(folder.path == "/" for folder in (*confinement.readable, *confinement.writable))
    for path, link in system_folders() if not covers_all else ():
        world.add(path, 0, *(("--symlink", link) if link else ("--ro-bind", path)), path)
    for path in SYSTEM_FACTS:
        world.add(path, 1, "--ro-bind-try", path, path)
    world.add("/proc", 1, "--proc", "/proc")
    world.add("/dev", 1, "--dev", "/dev")
    for path, part in {"/tmp": 8, "/var/tmp": 2, "/dev/shm": 2, home(): 4}.items():  # noqa: S108  # the sandbox's own
        world.add(path, 1, "--size", _room(part), "--tmpfs", path)
    for path in secret_system_files():
        world.add(path, 2, "--ro-bind", "/dev/null", path)
    for path in secret_system_folders():
        world.add(path, 2, "--perms", "0555", "--tmpfs", path)
    for path in dict.fromkeys((*tool_folders(), *confinement.programs)):
        world.add(path, 2, "--ro-bind-try", path, path)


def _sealed(confinement: Confinement) -> tuple[str, ...]:
    """Close the folders that hold the mounts: they are memory without a bound, and nothing has to be written there."""
    covers_all = any(folder.path == "/" for folder in (*confinement.readable, *confinement.writable))
    return ("--remount-ro", "/dev") if covers_all else ("--remount-ro", "/dev", "--remount-ro", "/")


@lru_cache(maxsize=4)
def _room(sixteenths: int) -> str:
    """This part of an eighth of the memory, which is what all folders of a command's own may hold together."""
    return str(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 8 * sixteenths // 16)


def _root(world: _World, folder: Folder, option: str) -> None:
    world.add(folder.path, 3, option, world.keep(folder.fd), folder.path)
    if folder.alias:
        world.add(folder.alias, 3, "--symlink", folder.path, folder.alias)


def _close_names(world: _World, folder: Folder, placeholders: Placeholders, *, is_writable: bool) -> None:
    masks = masks_of(folder, world.looks, is_writable=is_writable)
    for name in masks.empty_folders:
        path = f"{folder.path.rstrip('/')}/{name}"
        world.add(path, 4, "--perms", "0555", "--tmpfs", path)
    for below, names in masks.missing.items():
        _close_missing(world, folder, below, names, placeholders)
    for name in masks.empty_files:
        path = f"{folder.path.rstrip('/')}/{name}"
        world.add(path, 4, "--ro-bind", "/dev/null", path)
    for name in masks.held:
        _mount_again(world, folder, name, "--bind")
    for name in masks.read_only:
        _mount_again(world, folder, name, "--ro-bind")
    if masks.is_partial:
        world.is_partial = True
        world.warnings.append(
            "The scope's folder is too large to look through: secrets deep inside it are not closed off."
        )
    if masks.open_repositories:
        world.warnings.append(
            f"{masks.open_repositories} repositories in the scope's folder are too many to close the protected names that "
            "are missing in them; those that exist are closed."
        )
    if masks.links:
        world.warnings.append(f"{len(masks.links)} protected names here are links, which cannot be closed off.")


def _close_missing(
    world: _World, folder: Folder, below: tuple[str, ...], names: list[str], placeholders: Placeholders
) -> None:
    """Close names that are not there, in the root itself or in a repository below it."""
    fd = open_below(folder.fd, below)
    if fd is None:
        return
    try:
        held = placeholders.hold(fd, names)
    finally:
        os.close(fd)
    world.held += held
    above = "/".join((folder.path.rstrip("/"), *below))
    for _, name in held:
        path = f"{above}/{name}"
        world.add(path, 4, "--perms", "0555", "--tmpfs", path)


def _mount_again(world: _World, folder: Folder, name: str, how: str) -> None:
    """Mount a part of the root on itself, so that it can be neither renamed nor (with `--ro-bind`) written."""
    path = f"{folder.path.rstrip('/')}/{name}"
    if len(world.fds) >= _MAX_FDS:
        world.add(path, 4, f"{how}-try", path, path)
        return
    try:
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder.fd)
    except OSError:
        return
    world.opened.append(fd)
    world.add(path, 4, f"{how}-fd", world.keep(fd), path)


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
