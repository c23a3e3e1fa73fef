"""The root a sandboxed command sees, as a list of mounts from held descriptors. It contains only what is granted."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from computer_linker.computer.facets.processes import RESOLVER, InnerNetwork, Mount, Staging
from computer_linker.computer.local.linux.id_range import other_ids
from computer_linker.providers.sandbox.boundary import Closed, Confinement, Folder, Store
from computer_linker.providers.sandbox.masks import Masks
from computer_linker.providers.sandbox.places import (
    SETTINGS,
    SYSTEM_FACTS,
    depth,
    hold,
    home,
    secret_settings,
    system_folders,
    tool_folders,
)
from computer_linker.system import os

_MAX_LINKS = 8
_RESOLVER_SETTINGS = "/etc/resolv.conf"
_RESOLVER_TEXT = f"nameserver {RESOLVER[0]}\noptions timeout:5 attempts:2\n"
"""Without the file, programs ask the same address."""
_NEEDED_SETTINGS = (f"{SETTINGS}/alternatives", f"{SETTINGS}/fonts", f"{SETTINGS}/ld.so.cache")
"""Without these, programs that are links, fonts and libraries outside the usual folders are not found."""
_STRICTNESS = ("held", "read_only", "hidden")


@dataclass(slots=True)
class NewRoot:
    """Collects ranked mounts: deeper paths are mounted later, and at equal depth in the order they were added."""

    mounts: list[tuple[int, int, Mount]] = field(default_factory=list)
    fds: list[int] = field(default_factory=list)
    opened: list[int] = field(default_factory=list)
    """Descriptors it opened itself; those of the confinement's folders belong to the caller."""
    closed: dict[str, Mount] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    is_partial: bool = False
    network: InnerNetwork | None = None

    def add(self, rank: int, mount: Mount) -> None:
        self.mounts.append((depth(mount.at), rank, mount))

    def show(self, rank: int, fd: int, path: str, *, read_only: bool) -> None:
        self.fds.append(fd)
        self.add(rank, Mount("shown", path, index=len(self.fds) - 1, read_only=read_only))

    def view(self, rank: int, fd: int, store: Store, path: str) -> None:
        """Show a folder with all changes going to the store."""
        self.fds += (fd, store.fd)
        kind: Literal["view", "copied"] = "copied" if store.is_copy else "view"
        at = len(self.fds) - 2
        self.add(rank, Mount(kind, path, index=at, store=at + 1, target="/".join(store.only)))

    def close(self, path: str, closed: Closed) -> None:
        """Close a name; of two rules for one name the stricter wins."""
        known = self.closed.get(path)
        if known is None or _STRICTNESS.index(known.kind) < _STRICTNESS.index(closed.how):
            self.closed[path] = Mount(closed.how, path, device=closed.device, inode=closed.inode)

    def staging(self) -> Staging:
        ordered = [*self.mounts, *((depth(path), 4, mount) for path, mount in self.closed.items())]
        ordered.sort(key=lambda each: each[:2])
        mounts = tuple(mount for _, _, mount in ordered)
        return Staging(mounts, tuple(self.fds), _room_bytes(), other_ids(), self.network)


def new_root(confinement: Confinement, masks: dict[Folder, Masks]) -> NewRoot:
    """Build the mounts of what the confinement grants and of what it closes inside that."""
    root = NewRoot()
    try:
        _system(root, confinement)
        _tools(root, confinement)
        for folder in (*confinement.readable, *confinement.writable):
            _folder(root, folder, confinement, masks[folder])
        for path in confinement.emptied:
            root.add(5, Mount("room", path))
        for folder in confinement.own:
            root.show(6, folder.fd, folder.path, read_only=folder.only_read)
        for path in confinement.hidden:
            _hidden(root, path, confinement)
        if confinement.hosts is not None:
            root.network = confinement.hosts
            root.add(7, Mount("file", os.path.realpath(_RESOLVER_SETTINGS), target=_RESOLVER_TEXT))
        for file in confinement.files:
            root.add(7, Mount("file", os.path.realpath(file.at), target=file.text))
    except BaseException:
        for fd in root.opened:
            os.close(fd)
        raise
    return root


def _system(root: NewRoot, confinement: Confinement) -> None:
    covers_all = any(folder.path == "/" for folder in (*confinement.readable, *confinement.writable))
    facts = tuple(_inode(path) for path in SYSTEM_FACTS)
    root.mounts += _system_mounts(() if covers_all else system_folders(), facts)
    if confinement.is_bare:
        root.add(5, Mount("room", SETTINGS))
        for path in _NEEDED_SETTINGS:
            root.add(5, Mount("system", path, inode=_inode(path)))


@lru_cache(maxsize=4)
def _system_mounts(folders: tuple[tuple[str, str], ...], facts: tuple[int, ...]) -> list[tuple[int, int, Mount]]:
    """What every root has, ranked. Built once, since every command waits for it."""
    root = NewRoot()
    for path, link in folders:
        root.add(0, Mount("link", path, target=link) if link else Mount("system", path))
    for path, inode in zip(SYSTEM_FACTS, facts, strict=True):
        root.add(1, Mount("system", path, inode=inode))
    root.add(1, Mount("devices", "/dev"))
    for path in ("/proc", "/tmp", "/var/tmp", home()):  # noqa: S108  # the sandbox's own
        root.add(1, Mount("room", path))
    for path in secret_settings():
        # No command can replace them, so their identity need not be checked.
        root.add(2, Mount("hidden", path))
    return root.mounts


def _inode(path: str) -> int:
    """Tells one file of the system from another that replaces it; 0 where there is none."""
    try:
        return os.stat(path).st_ino  # every command waits for this
    except OSError:
        return 0


def _tools(root: NewRoot, confinement: Confinement) -> None:
    """Mount the tool folders of the home and the program's own paths; links among them are recreated, not followed."""
    links = (link for path in confinement.programs for link in _links_from(path))
    tools = () if confinement.is_bare else tool_folders()
    for path in dict.fromkeys((*tools, *confinement.programs, *links)):
        fd = hold(path)
        if fd is None:
            continue
        root.opened.append(fd)
        link = os.readlink("", dir_fd=fd) if os.fstat(fd).st_mode & 0o170000 == 0o120000 else ""
        if link:
            root.add(2, Mount("link", path, target=link))
        else:
            root.show(2, fd, path, read_only=True)


def _links_from(path: str) -> list[str]:
    """The links between a program's name and its file, as in `python -> python3 -> python3.11`; without the targets."""
    found: list[str] = []
    while len(found) < _MAX_LINKS:
        try:
            path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
        except OSError:
            break
        found.append(path)
    # The last one is the file itself, which is mounted separately where needed.
    return found[:-1]


def _folder(root: NewRoot, folder: Folder, confinement: Confinement, masks: Masks) -> None:
    root.warnings += masks.warnings
    root.is_partial = root.is_partial or masks.is_partial
    if folder.view is None:
        root.show(3, folder.fd, folder.path, read_only=folder in confinement.readable)
    else:
        root.view(3, folder.fd, folder.view, folder.path)
    own = tuple(f"{each.path}/" for each in confinement.own)
    for closed in masks.closed:
        path = "/".join((folder.path.rstrip("/"), *closed.parts))
        # A program's own folders stay writable to it, even inside a closed name.
        if not path.startswith(own):
            root.close(path, closed)


def _hidden(root: NewRoot, path: str, confinement: Confinement) -> None:
    """Hide a folder of the service wherever it is visible; with an empty tmpfs if something inside it is granted."""
    try:
        found = os.stat(path, follow_symlinks=False)  # every command waits for this
    except OSError:
        return
    inside = (*confinement.writable, *confinement.readable, *confinement.own)
    if any(folder.path.startswith(f"{path}/") for folder in inside):
        root.add(5, Mount("room", path))
    else:
        root.add(5, Mount("hidden", path, device=found.st_dev, inode=found.st_ino))


@lru_cache(maxsize=1)
def _room_bytes() -> int:
    """The size limit of a command's tmpfs folders, which use the machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 8
