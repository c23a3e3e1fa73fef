"""The repository a folder lies in, held by descriptor, with everything git would read of it beneath the scope."""

import re
import stat
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from computer_linker.errors import InvalidRequest, LinkError, NotFound, PathOutOfScope, PermissionDenied
from computer_linker.model.paths import RootedPath
from computer_linker.policy.paths import is_hidden_by
from computer_linker.providers.held import Held, StateMarks, held
from computer_linker.system import cwd_of, os

_MAX_FILE = 65_536
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PLAIN = (
    "index", "packed-refs", "shallow", "config", "config.worktree", "commondir", "info", "info/grafts", "logs", "worktrees",
    "objects", "objects/info", "refs",
)  # fmt: skip
_MAX_REFS = 20_000
_MAX_BORROWED = 5
"""How far git itself follows folders of objects that borrow from others."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A work tree and its git folder. `view` is the visible part of the tree, from the top."""

    top: int
    git: int
    common: int
    data: tuple[int, ...]
    """Descriptors of the folders with git's own data: settings, history, objects, and where objects are borrowed from."""
    files: tuple[int, ...]
    """Descriptors of what git may read of the work tree: all of it, or the scope's folder and the rules for files above that."""
    git_dir: str
    view: tuple[str, ...]
    above: tuple[str, ...]
    """From the scope's root down to the top; empty when the top is the root or lies above it."""
    below: tuple[str, ...]
    """From the top down to the scope's root; empty when the top lies in the scope."""
    place: RootedPath
    states: StateMarks

    @property
    def is_part(self) -> bool:
        """True when the scope is a sub-folder of the repository."""
        return bool(self.below)

    @property
    def cwd(self) -> str:
        return cwd_of(self.top)

    def spec(self, parts: tuple[str, ...]) -> str:
        """A literal pathspec of this path from the top."""
        return ":(top,literal)" + "/".join(parts)

    def inside(self, path: bytes) -> tuple[str, ...] | None:
        """Components from the scope's root of a path from the top; None when it is outside or hidden."""
        parts = tuple(os.fsdecode(path).rstrip("/").split("/"))
        if parts[: len(self.below)] != self.below:
            return None
        if self.states.cover(parts[:-1]):
            return None
        parts = (*self.above, *parts[len(self.below) :])
        return None if is_hidden_by(parts, self.place.rules) else parts

    def shown(self, parts: tuple[str, ...]) -> str:
        """A path as clients write it."""
        return os.fsencode(self.place.prefix + "/".join(parts)).decode("utf-8", "backslashreplace")

    def from_top(self, path: RootedPath) -> tuple[str, ...]:
        """Components from the top of a path of the scope. Raises when it lies outside this repository."""
        if path.root != self.place.root or path.parts[: len(self.above)] != self.above:
            raise PathOutOfScope(f"{path.shown} is not in this repository.", path=path.shown)
        return (*self.below, *path.parts[len(self.above) :])


@contextmanager
def repository_of(folder: Held) -> Iterator[Repository]:
    """The repository around a held folder. Raises NotFound when there is none."""
    if not folder.is_folder:
        shown = folder.path.shown
        raise InvalidRequest(f"{shown} is not a folder; name the folder, and files as `paths`.", path=shown)
    with ExitStack() as stack:
        yield _found_inside(folder, stack) or _found_above(folder, stack)


def _found_inside(folder: Held, stack: ExitStack) -> Repository | None:
    parts = folder.path.parts
    for depth in range(len(parts), -1, -1):
        place = RootedPath(folder.path.root, parts[:depth], folder.path.rules, folder.path.prefix)
        top = stack.enter_context(held(place))
        kind = _kind(".git", top.fd)
        if kind is None:
            continue
        git = _git_folder(place, top.fd, kind, stack)
        common = _common_folder(git, stack)
        folders = (git,) if common is git else (git, common)
        borrowed = [fd for one in folders for fd in _borrowed(one, place, stack)]
        _check_owner(top.fd, git.fd)
        git_dir = _relative(git.path.parts, parts[:depth])
        data = (git.fd, common.fd, *borrowed)
        return Repository(
            top.fd, git.fd, common.fd, data, (top.fd,), git_dir, parts[depth:], parts[:depth], (), folder.path,
            StateMarks(top.fd),
        )  # fmt: skip
    return None


def _found_above(folder: Held, stack: ExitStack) -> Repository:
    """The repository above a scope that is its sub-folder: only an ordinary `.git` folder is supported."""
    root = Path(os.path.realpath(folder.path.root))
    for top_path in root.parents:
        if not os.path.lexists(top_path / ".git"):
            continue
        top = os.open(top_path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, top)
        try:
            git = os.open(".git", _FOLDER, dir_fd=top)
        except OSError as error:
            raise PathOutOfScope("The repository's git folder lies outside this scope.") from error
        stack.callback(os.close, git)
        held_git = Held(git, RootedPath(str(top_path), (".git",), folder.path.rules), is_folder=True)
        if _kind("commondir", git) is not None:
            raise PathOutOfScope("The repository's git folder lies outside this scope.")
        borrowed = _borrowed(held_git, RootedPath(str(top_path), (), folder.path.rules), stack)
        _check_owner(top, git)
        below = root.relative_to(top_path).parts
        data, files = (git, *borrowed), tuple(_of_part(top, below, stack))
        return Repository(
            top, git, git, data, files, ".git", (*below, *folder.path.parts), (), below, folder.path, StateMarks(top)
        )
    raise NotFound(
        f"{folder.path.shown} is not in a git repository. Bare repositories are not served.", path=folder.path.shown
    )


def _of_part(top: int, below: tuple[str, ...], stack: ExitStack) -> Iterator[int]:
    """The folder of a scope that is a part of the work tree, and the files above it by which git treats the files in it."""
    folder = top
    for name in below:
        for rules in (".gitattributes", ".gitignore"):
            with suppress(OSError):
                found = os.open(rules, _READ, dir_fd=folder)
                stack.callback(os.close, found)
                yield found
        folder = os.open(name, _FOLDER, dir_fd=folder)
        stack.callback(os.close, folder)
    yield folder


def _kind(name: str, folder: int) -> int | None:
    try:
        return stat.S_IFMT(os.lstat(name, dir_fd=folder).st_mode)
    except FileNotFoundError:
        return None


def _git_folder(place: RootedPath, top: int, kind: int, stack: ExitStack) -> Held:
    if kind == stat.S_IFREG:
        text = _read(".git", top)
        if not text.startswith("gitdir: "):
            raise NotFound(f"{place.shown} has a .git file that names no git folder.", path=place.shown)
        target = _beneath(place, text[8:].rstrip("\r\n"), place.parts)
    else:
        target = place.child(".git")
    found = stack.enter_context(held(target))
    if not found.is_folder:
        raise NotFound(f"{place.shown} has no usable git folder.", path=place.shown)
    return found


def _common_folder(git: Held, stack: ExitStack) -> Held:
    if _kind("commondir", git.fd) is None:
        return git
    return stack.enter_context(held(_beneath(git.path, _read("commondir", git.fd).strip(), git.path.parts)))


def _beneath(place: RootedPath, written: str, base: tuple[str, ...]) -> RootedPath:
    """The path written in a file of the repository. Raises when it leaves the scope."""
    if written.startswith("/"):
        for root in (place.root, os.path.realpath(place.root)):
            with suppress(ValueError):
                return RootedPath(
                    place.root, Path(os.path.normpath(written)).relative_to(root).parts, place.rules, place.prefix
                )
        raise PathOutOfScope("The repository keeps its data outside this scope.")
    parts = list(base)
    for name in written.split("/"):
        if name == "..":
            if not parts:
                raise PathOutOfScope("The repository keeps its data outside this scope.")
            parts.pop()
        elif name not in ("", "."):
            parts.append(name)
    return RootedPath(place.root, tuple(parts), place.rules, place.prefix)


def _borrowed(git: Held, place: RootedPath, stack: ExitStack) -> list[int]:
    """The folders that this git folder borrows objects from, held. Raises where git would read elsewhere, by links or by name."""
    _refuse_links(git.fd, place)
    try:
        objects = os.open("objects", _FOLDER, dir_fd=git.fd)
    except FileNotFoundError:
        return []
    stack.callback(os.close, objects)
    waiting = [(objects, (*git.path.parts, "objects"), 0)]
    found: list[int] = []
    while waiting:
        objects, parts, depth = waiting.pop()
        for name in (".", "pack"):
            _refuse_links_in(objects, name, place)
        for line in _alternates(objects) if depth <= _MAX_BORROWED else ():
            try:
                other = stack.enter_context(held(_beneath(RootedPath(place.root, (), place.rules), line, parts)))
            except LinkError as error:
                raise PathOutOfScope("The repository borrows objects from outside this scope.") from error
            found.append(other.fd)
            waiting.append((other.fd, other.path.parts, depth + 1))
    return found


def _alternates(objects: int) -> list[str]:
    if _kind("info/alternates", objects) is None:
        return []
    lines = _read("info/alternates", objects).splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _refuse_links(git: int, place: RootedPath) -> None:
    """Refuse a git folder in which a name leads elsewhere: git follows links in it, also to what this scope closes."""
    for name in _PLAIN:
        if _kind(name, git) == stat.S_IFLNK:
            raise _is_link(name, place)
    waiting, seen = ["refs"], 0
    while waiting and seen < _MAX_REFS:
        seen += _refuse_links_in(git, waiting.pop(), place, waiting)


def _refuse_links_in(folder: int, name: str, place: RootedPath, folders: list[str] | None = None) -> int:
    """Refuse links in a folder, and add the folders in it to `folders`. Returns how many entries it has."""
    try:
        opened = os.open(name, _FOLDER, dir_fd=folder)
    except OSError:
        return 0
    try:
        with os.scandir(opened) as found:
            entries = list(found)
    finally:
        os.close(opened)
    link = next((entry for entry in entries if entry.is_symlink()), None)
    if link is not None:
        raise _is_link(f"{name}/{link.name}", place)
    if folders is not None:
        folders += [f"{name}/{entry.name}" for entry in entries if entry.is_dir(follow_symlinks=False)]
    return len(entries)


def _is_link(name: str, place: RootedPath) -> PathOutOfScope:
    return PathOutOfScope(f"The repository's {name} is a link, which git would follow.", path=place.shown)


def _check_owner(top: int, git: int) -> None:
    if any(os.fstat(fd).st_uid != os.geteuid() for fd in (top, git)):
        raise PermissionDenied("The repository belongs to another user of this system, so git is not run in it.")


def _read(name: str, folder: int) -> str:
    try:
        fd = os.open(name, _READ, dir_fd=folder)
    except OSError as error:
        raise PathOutOfScope(f"The repository's {name} cannot be read.") from error
    try:
        return os.fsdecode(os.read(fd, _MAX_FILE))
    finally:
        os.close(fd)


def _relative(target: tuple[str, ...], start: tuple[str, ...]) -> str:
    return os.path.relpath("/" + "/".join(target), "/" + "/".join(start))


# Reads the head's hash without git, to decide whether a cached result about history is current.

T = TypeVar("T")
_HASH = re.compile(rb"[0-9a-f]{40}|[0-9a-f]{64}")
_REF = re.compile(rb"ref: (refs/heads/[^\s\0]{1,250})")
_MAX_PACKED = 4 << 20


class Memory:
    """A small cache of results that cannot change, because they are about commits of known hashes."""

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = Lock()

    def recall(self, key: Hashable | None, make: Callable[[], T]) -> T:
        """The cached result, or a new one, which is cached unless there is no key."""
        if key is None:
            return make()
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]  # type: ignore[no-any-return]  # a key has one type of result
        made = make()
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made


def history_key(repository: Repository) -> tuple[Hashable, ...] | None:
    """A cache key for the history reachable from the head; None where it cannot be determined."""
    head = head_of(repository)
    if head is None:
        return None
    info = os.fstat(repository.common)
    edges = tuple(_mark(name, repository.common) for name in ("shallow", "info/grafts", "config"))
    return (info.st_dev, info.st_ino, head, edges)


def head_of(repository: Repository) -> bytes | None:
    """The hash of the head, from its file and the branch's; None for anything unusual."""
    text = _content("HEAD", repository.git, 1024)
    if text is None:
        return None
    text = text.rstrip(b"\n")
    if _HASH.fullmatch(text):
        return text
    named = _REF.fullmatch(text)
    if named is None or b".." in named[1]:
        return None
    loose = _content(os.fsdecode(named[1]), repository.common, 1024)
    if loose is not None:
        loose = loose.rstrip(b"\n")
        return loose if _HASH.fullmatch(loose) else None
    packed = _content("packed-refs", repository.common, _MAX_PACKED) or b""
    found = re.search(rb"^([0-9a-f]{40,64}) " + re.escape(named[1]) + rb"$", packed, re.MULTILINE)
    return found[1] if found else None


def _content(name: str, folder: int, limit: int) -> bytes | None:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return None
    try:
        text = os.read(fd, limit + 1)
        return text if len(text) <= limit else None
    except OSError:
        return None
    finally:
        os.close(fd)


def _mark(name: str, folder: int) -> tuple[int, int, int] | None:
    try:
        info = os.lstat(name, dir_fd=folder)
    except OSError:
        return None
    return (info.st_ino, info.st_size, info.st_ctime_ns)
