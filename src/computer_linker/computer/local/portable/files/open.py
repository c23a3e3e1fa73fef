"""Opening paths beneath a held root: by openat2 where the kernel has it, else by a descriptor walk.

No name is checked and then opened again. A path without links is opened in one call that refuses links; one with links is
opened beneath the root, and then the real name of what was opened is judged by the scope's rules.
"""

import errno
import stat as modes
from collections import deque
from dataclasses import dataclass
from itertools import islice

from computer_linker.computer.facets.files import FileType, Stat
from computer_linker.computer.local.faults import fault
from computer_linker.computer.local.portable.files.repositories import refuse_repository
from computer_linker.computer.local.portable.openat2 import (
    RESOLVE_BENEATH,
    RESOLVE_NO_MAGICLINKS,
    RESOLVE_NO_SYMLINKS,
    openat2,
    openat2_works,
)
from computer_linker.computer.local.portable.roots import HOLD, Root, Roots
from computer_linker.errors import Conflict, InvalidRequest, NotFound, PathOutOfScope, PermissionDenied
from computer_linker.model.paths import RootedPath
from computer_linker.policy.names import folded
from computer_linker.policy.paths import check_name, is_hidden_by, of_a_service
from computer_linker.system import descriptor_path, os

_BENEATH = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS
_PLAIN = _BENEATH | RESOLVE_NO_SYMLINKS
_PATH_ONLY = getattr(os, "O_PATH", os.O_RDONLY)
# A device or pipe must never block the open, nor become the service's terminal.
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
FOLDER = os.O_RDONLY | os.O_DIRECTORY
_MAX_LINKS = 40
_MAX_TWINS = 10_000


@dataclass(slots=True)
class OpenedParent:
    """A name in a held folder; `missing` are the folders between the two that do not exist yet."""

    folder: int
    name: str
    path: RootedPath
    missing: tuple[str, ...] = ()

    def stat(self) -> Stat | None:
        """The metadata at this name now, of the link itself where it is one."""
        if self.missing or self.folder < 0:
            return None
        try:
            return stat_of(os.stat(self.name, dir_fd=self.folder, follow_symlinks=False))
        except FileNotFoundError:
            return None

    def close(self) -> None:
        if self.folder >= 0:
            os.close(self.folder)
            self.folder = -1


class Opener:
    """Opens RootedPaths."""

    def __init__(self, roots: Roots, *, by_kernel: bool | None = None) -> None:
        self.roots = roots
        self.by_kernel = openat2_works() if by_kernel is None else by_kernel

    def open(self, path: RootedPath, flags: int, *, for_writing: bool = False) -> tuple[int, RootedPath]:
        """A descriptor and the real path of what it is. The caller closes it."""
        root = self.roots.hold(path.root)
        refuse_closed(root, path)
        try:
            descriptor, real = self._open(root, path, flags, for_writing)
        except OSError as error:
            raise fault(error, path.shown) from error
        if (state := root.state_above(real.parts)) is not None:
            os.close(descriptor)
            raise of_a_service(path, state)
        return descriptor, real

    def open_regular(self, path: RootedPath) -> tuple[int, os.stat_result, RootedPath]:
        """A descriptor of a regular file, open for reading. Folders, pipes, devices and sockets are refused."""
        descriptor, real = self.open(path, READ)
        try:
            found = os.fstat(descriptor)
            refuse_irregular(found.st_mode, path)
            if found.st_nlink > 1:
                self._refuse_twin(found, path, real)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor, found, real

    def stat(self, path: RootedPath) -> Stat:
        """The name itself, without following a link at its end."""
        if len(path.parts) == 1:
            # A single name in the held root needs no path resolution.
            root = self.roots.hold(path.root)
            refuse_closed(root, path)
            try:
                return stat_of(os.stat(path.parts[0], dir_fd=root.descriptor, follow_symlinks=False))
            except (OSError, UnicodeEncodeError) as error:
                raise _as_fault(error, path) from error
        descriptor, _ = self.open(path, _PATH_ONLY | os.O_NOFOLLOW)
        try:
            return stat_of(os.fstat(descriptor))
        finally:
            os.close(descriptor)

    def place(self, path: RootedPath, *, create_parents: bool = False) -> OpenedParent:
        """The held parent of a name that is to be changed; a link at the name itself is not followed."""
        if not path.parts:
            raise InvalidRequest("The scope's root itself cannot be changed; name something inside it.")
        above = path.parent
        missing: list[str] = []
        while True:
            try:
                folder, real = self.open(above, HOLD, for_writing=True)
                break
            except NotFound:
                if not create_parents or not above.parts:
                    raise NotFound(
                        f"The folder {path.parent.shown} does not exist. Make it first, or use createParents.",
                        path=path.parent.shown,
                    ) from None
                missing.insert(0, above.name)
                above = above.parent
        place = OpenedParent(folder, path.name, real.child(*missing, path.name), tuple(missing))
        try:
            check_name(place.path, for_writing=True)
            refuse_repository(place)
            refuse_closed(self.roots.hold(path.root), place.path)
        except BaseException:
            place.close()
            raise
        return place

    def judge_again(self, place: OpenedParent) -> None:
        """Right before the change: refuse where another change moved the folder, or made the rest of a git repository."""
        if os.fstat(place.folder).st_nlink == 0:
            # An earlier change of the batch removed it: the kernel lets nothing be made in it.
            return
        held = self.roots.hold(place.path.root)
        # Without a name the path is that of the folder itself.
        above = place.path.parts[: len(place.path.parts) - bool(place.name) - len(place.missing)]
        real = _real_path(held, place.folder, place.path)
        if real.parts != above and tuple(map(folded, real.parts)) != tuple(map(folded, above)):
            raise Conflict(f"The folder of {place.path.shown} was moved just now. Try again.", path=place.path.shown)
        refuse_repository(place)

    def followed_place(self, path: RootedPath, *, create_parents: bool = False) -> OpenedParent:
        """As `place`, but a link at the name is followed to its target inside the root."""
        for _ in range(3):
            place = self.place(path, create_parents=create_parents)
            found = place.stat()
            if found is None or found.type != "symlink":
                return place
            place.close()
            try:
                descriptor, path = self.open(path, _PATH_ONLY, for_writing=True)
            except NotFound:
                raise NotFound(f"{path.shown} is a link to something that does not exist.", path=path.shown) from None
            os.close(descriptor)
        raise Conflict(f"{path.shown} keeps changing between a link and a file. Try again.", path=path.shown)

    def _open(self, root: Root, path: RootedPath, flags: int, for_writing: bool) -> tuple[int, RootedPath]:
        if not self.by_kernel:
            return self._walked(root, path, flags, for_writing)
        name = encoded(path) or b"."
        try:
            return openat2(root.descriptor, name, flags, _PLAIN), path
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
        descriptor = openat2(root.descriptor, name, flags, _BENEATH)
        try:
            real = _real_path(root, descriptor, path)
            _judge(root, real, path, for_writing)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor, real

    def _refuse_twin(self, found: os.stat_result, path: RootedPath, real: RootedPath) -> None:
        """Refuse a hard link whose other name, beside it or at the top of the root, is closed by the scope's rules."""
        folders = {real.parent.parts, ()}
        for parts in folders:
            folder = RootedPath(path.root, parts, path.rules, path.prefix)
            descriptor, _ = self.open(folder, FOLDER)
            try:
                with os.scandir(descriptor) as entries:
                    twins = [entry.name for entry in islice(entries, _MAX_TWINS) if entry.inode() == found.st_ino]
            finally:
                os.close(descriptor)
            for name in twins:
                if is_hidden_by((*parts, name), path.rules):
                    raise PermissionDenied(
                        f"{path.shown} is a hardlink to something this scope does not open.",
                        path=path.shown,
                        rule="hardlink",
                    )

    def closed_at_the_top(self, path: RootedPath) -> set[int]:
        """The inodes of the root's entries that the scope's rules close."""
        descriptor, _ = self.open(RootedPath(path.root, (), path.rules, path.prefix), FOLDER)
        try:
            with os.scandir(descriptor) as entries:
                closed = (entry for entry in islice(entries, _MAX_TWINS) if is_hidden_by((entry.name,), path.rules))
                return {entry.inode() for entry in closed}
        finally:
            os.close(descriptor)

    def _walked(self, root: Root, path: RootedPath, flags: int, for_writing: bool) -> tuple[int, RootedPath]:
        encoded(path)
        descriptor, names = _walk(root.descriptor, path.parts, flags)
        real = RootedPath(path.root, names, path.rules, path.prefix)
        try:
            _judge(root, real, path, for_writing)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor, real


def encoded(path: RootedPath) -> bytes:
    """The path encoded for the kernel. A name that is not valid Unicode is refused."""
    try:
        return "/".join(path.parts).encode("utf-8")
    except UnicodeEncodeError as error:
        raise _as_fault(error, path) from error


def refuse_closed(root: Root, path: RootedPath) -> None:
    """Refuse the service's own state, whatever its folder is called."""
    closed = root.closed
    if closed is not None and path.parts[: len(closed)] == closed:
        raise PermissionDenied(
            f"{path.shown} belongs to this service, and is never opened through a scope.",
            path=path.shown,
            rule="service_state",
        )


def refuse_irregular(mode: int, path: RootedPath) -> None:
    """Refuse everything but a regular file."""
    if modes.S_ISREG(mode):
        return
    if modes.S_ISDIR(mode):
        raise InvalidRequest(f"{path.shown} is a folder; file.list and file.tree show what it has.", path=path.shown)
    kind = "a link" if modes.S_ISLNK(mode) else "a device, socket or pipe"
    raise InvalidRequest(f"{path.shown} is {kind}, not a regular file.", path=path.shown)


def stat_of(found: os.stat_result) -> Stat:
    """Convert an os.stat_result to the facet's Stat."""
    return Stat(
        type_of(found.st_mode),
        found.st_size,
        found.st_mtime_ns,
        found.st_mode & 0o7777,
        found.st_nlink,
        found.st_dev,
        found.st_ino,
    )


def type_of(mode: int) -> FileType:
    match mode & 0o170000:
        case modes.S_IFREG:
            return "file"
        case modes.S_IFDIR:
            return "directory"
        case modes.S_IFLNK:
            return "symlink"
        case _:
            return "other"


def _as_fault(error: OSError | UnicodeEncodeError, path: RootedPath) -> Exception:
    if isinstance(error, OSError):
        return fault(error, path.shown)
    return InvalidRequest("The target holds a character that no file name can have.")


def _judge(root: Root, real: RootedPath, requested: RootedPath, for_writing: bool) -> None:
    if real.parts == requested.parts:
        return
    try:
        check_name(real, for_writing=for_writing)
        refuse_closed(root, real)
    except PermissionDenied as error:
        # The link's own name is reported: its target must not be disclosed to the caller.
        raise PermissionDenied(
            f"{requested.shown} is a link to something this scope does not open.", path=requested.shown, **_rule(error)
        ) from None


def _rule(error: PermissionDenied) -> dict[str, object]:
    return {"rule": error.details["rule"]} if "rule" in error.details else {}


def _real_path(root: Root, descriptor: int, requested: RootedPath) -> RootedPath:
    """The name of an open descriptor beneath its root, from the kernel."""
    if os.fstat(descriptor).st_nlink == 0:
        raise NotFound(f"{requested.shown} was removed while it was opened.", path=requested.shown)
    base = descriptor_path(root.descriptor).rstrip("/")
    name = descriptor_path(descriptor)
    if name == base or (base == "" and name == "/"):
        return RootedPath(requested.root, (), requested.rules, requested.prefix)
    if not name.startswith(base + "/"):
        raise PathOutOfScope(f"{requested.shown} leaves the scope's root through a link.", path=requested.shown)
    return RootedPath(requested.root, tuple(name[len(base) + 1 :].split("/")), requested.rules, requested.prefix)


def _walk(root: int, parts: tuple[str, ...], flags: int) -> tuple[int, tuple[str, ...]]:
    """Open name by name without following links; a link that stays inside is expanded in the path."""
    held = [os.dup(root)]
    names: list[str] = []
    todo = deque(parts)
    links = 0
    is_opened = False
    try:
        while todo:
            name = todo.popleft()
            is_opened = False
            if name in ("", "."):
                continue
            if name == "..":
                if not names:
                    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
                os.close(held.pop())
                names.pop()
                continue
            target = _link_target(held[-1], name) if todo or not flags & os.O_NOFOLLOW else None
            if target is not None:
                links += 1
                if links > _MAX_LINKS or target.startswith("/"):
                    number = errno.EXDEV if target.startswith("/") else errno.ELOOP
                    raise OSError(number, os.strerror(number))
                todo.extendleft(reversed(target.split("/")))
                continue
            # If anything follows (also `..`, `.` or a trailing slash), this name has to be a folder.
            held.append(_open_name(held[-1], name, HOLD if todo else flags))
            names.append(name)
            is_opened = not todo
        # The walk may end on a folder it has already opened: the root itself, or the end of a link like `a/..`.
        return held.pop() if is_opened else os.open(".", flags & ~os.O_NOFOLLOW, dir_fd=held[-1]), tuple(names)
    finally:
        for descriptor in held:
            os.close(descriptor)


def _open_name(folder: int, name: str, flags: int) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        # It has become a link since the check: another process is swapping names.
        if error.errno == errno.ELOOP:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
        raise


def _link_target(folder: int, name: str) -> str | None:
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT, errno.EACCES):
            return None
        raise


def walk_below(folder: int, parts: tuple[str, ...], flags: int) -> int:
    """Open names below an open folder by the descriptor walk."""
    return _walk(folder, parts, flags)[0]
