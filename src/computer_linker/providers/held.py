"""A folder or file beneath a scope's root, held by descriptor so that a swapped name cannot redirect a child process."""

import errno
import glob
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio.to_thread

from computer_linker.errors import InvalidRequest, NotFound, OsPermissionRequired, PathOutOfScope, PermissionDenied
from computer_linker.home import is_marked
from computer_linker.model.paths import RootedPath
from computer_linker.policy.paths import check_name, of_a_service
from computer_linker.system import cwd_of, os

_MAX_LINKS = 32
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK the open of a pipe waits for a writer that may never exist.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class Held:
    """An open descriptor and its real path, links inside the root resolved."""

    fd: int
    path: RootedPath
    is_folder: bool

    @property
    def cwd(self) -> str:
        """A path of this folder for use as a child's working folder."""
        return cwd_of(self.fd)


class StateMarks:
    """Tells which folders below an open one are, or lie in, the state folder of a service; keeps what it found."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._known: dict[tuple[str, ...], bool] = {}

    def cover(self, folder: tuple[str, ...]) -> bool:
        """Whether this folder does."""
        known = self._known.get(folder)
        if known is None:
            above = bool(folder) and self.cover(folder[:-1])
            known = self._known[folder] = above or is_marked(self._fd, "/".join(folder))
        return known


def guarded(path: RootedPath, state: Path) -> RootedPath:
    """The same path with the service's own state denied, where the scope happens to contain it."""
    root, home = os.path.realpath(path.root), os.path.realpath(state)
    if root == home or root.startswith(home + "/"):
        raise PermissionDenied("The service's own state is not opened through a scope.", path=path.shown, rule="state")
    if not home.startswith(root.rstrip("/") + "/"):
        return path
    inside = glob.escape(home[len(root.rstrip("/")) + 1 :])
    return replace(path, rules=replace(path.rules, denied=(*path.rules.denied, inside)))


@contextmanager
def held(path: RootedPath) -> Iterator[Held]:
    """Open a folder or regular file beneath the root, component by component without leaving it."""
    found = _walk(path)
    try:
        yield found
    finally:
        os.close(found.fd)


@asynccontextmanager
async def hold(path: RootedPath) -> AsyncIterator[Held]:
    """As `held`, without blocking the event loop."""
    found = await anyio.to_thread.run_sync(_walk, path)
    try:
        yield found
    finally:
        os.close(found.fd)


@asynccontextmanager
async def hold_folder(path: RootedPath) -> AsyncIterator[Held]:
    """As `hold`, and refuse anything but a folder."""
    async with hold(path) as found:
        if not found.is_folder:
            raise InvalidRequest(f"{path.shown} is not a folder.", path=path.shown)
        yield found


def _walk(path: RootedPath) -> Held:
    links = 0
    pending = list(path.parts)
    done: list[str] = []
    fds = [_open_root(path)]
    try:
        while pending:
            name = pending.pop(0)
            if name == "..":
                _step_up(fds, done, path)
                continue
            try:
                fds.append(_open_name(name, fds[-1], is_last=not pending))
                done.append(name)
            except OSError as error:
                if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
                    raise
                links += 1
                pending[:0] = _link_names(name, fds[-1], path, links, error)
        _refuse_state(path, fds, tuple(done))
        return _settled(path, tuple(done), fds.pop())
    except OSError as error:
        raise _named(error, path) from error
    finally:
        for fd in fds:
            os.close(fd)


def _open_root(path: RootedPath) -> int:
    try:
        return os.open(path.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise NotFound("The scope's root folder cannot be opened.", path=".") from error


def _open_name(name: str, parent: int, *, is_last: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except NotADirectoryError:
        if not is_last or stat.S_ISLNK(os.lstat(name, dir_fd=parent).st_mode):
            raise
        return os.open(name, _FILE, dir_fd=parent)


def _step_up(fds: list[int], done: list[str], path: RootedPath) -> None:
    if not done:
        raise PathOutOfScope(f"{path.shown} leads out of the scope.", path=path.shown)
    done.pop()
    os.close(fds.pop())


def _link_names(name: str, parent: int, path: RootedPath, links: int, error: OSError) -> list[str]:
    try:
        target = os.readlink(name, dir_fd=parent)
    except OSError:
        raise error from None
    if links > _MAX_LINKS:
        raise InvalidRequest(f"{path.shown} goes through too many links.", path=path.shown)
    if target.startswith("/"):
        raise PathOutOfScope(f"{path.shown} leads out of the scope.", path=path.shown)
    return [part for part in target.split("/") if part not in ("", ".")]


def _refuse_state(path: RootedPath, fds: list[int], names: tuple[str, ...]) -> None:
    """Refuse what is or lies in the state folder of another service, by the mark in it."""
    for depth, fd in enumerate(fds):
        if is_marked(fd):
            raise of_a_service(path, names[:depth])


def _settled(path: RootedPath, parts: tuple[str, ...], fd: int) -> Held:
    try:
        mode = os.fstat(fd).st_mode
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            raise InvalidRequest(f"{path.shown} is neither a file nor a folder.", path=path.shown)
        real = RootedPath(path.root, parts, path.rules, path.prefix)
        # A harmless name may be a link to a sensitive file: the rules apply to what was opened.
        check_name(real, for_writing=False)
    except BaseException:
        os.close(fd)
        raise
    return Held(fd, real, stat.S_ISDIR(mode))


def _named(error: OSError, path: RootedPath) -> Exception:
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR:
            return NotFound(f"{path.shown} does not exist.", path=path.shown)
        case errno.EACCES | errno.EPERM:
            return OsPermissionRequired(f"The system does not let this service open {path.shown}.", path=path.shown)
        case errno.ENXIO | errno.ENODEV:
            return InvalidRequest(f"{path.shown} is neither a file nor a folder.", path=path.shown)
        case errno.ENAMETOOLONG | errno.EINVAL | errno.EILSEQ:
            return InvalidRequest(f"{path.shown} is not a usable name.", path=path.shown)
    return NotFound(f"{path.shown} cannot be opened.", path=path.shown)
