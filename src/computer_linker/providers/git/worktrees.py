"""Work trees of a repository: those inside the scope, and new ones beneath it."""

from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from computer_linker.computer.local.portable.files.trees import empty_tree, remove_tree
from computer_linker.errors import (
    AlreadyExists,
    Conflict,
    LimitExceeded,
    LinkError,
    NotFound,
    PathOutOfScope,
    PermissionDenied,
)
from computer_linker.model.paths import RootedPath
from computer_linker.policy.paths import is_hidden_by
from computer_linker.providers.child import ProcessGroup
from computer_linker.providers.git.log import check_branch
from computer_linker.providers.git.run import GitRun
from computer_linker.providers.held import Held, held
from computer_linker.system import descriptor_path, os

_MAX_NAMES = 64 << 20
_MAX_PATH = 8192
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class Worktree:
    path: str
    head: str | None
    branch: str | None
    is_locked: bool


def worktrees(run: GitRun) -> tuple[list[Worktree], int]:
    """The work trees inside the scope, and how many lie outside."""
    found: list[Worktree] = []
    outside = 0
    out = run("worktree", "list", "--porcelain", "-z").out
    for block in out.split(b"\0\0"):
        fields = dict(line.partition(b" ")[::2] for line in block.split(b"\0") if line)
        if b"worktree" not in fields:
            continue
        shown = _shown(run, os.fsdecode(fields[b"worktree"]))
        if shown is None:
            outside += 1
            continue
        branch = fields.get(b"branch")
        head = fields.get(b"HEAD")
        found.append(
            Worktree(
                shown,
                None if head is None else head.decode("ascii", "replace"),
                None if branch is None else branch.decode("utf-8", "replace").removeprefix("refs/heads/"),
                b"locked" in fields,
            )
        )
    return found, outside


def create(run: GitRun, path: RootedPath, branch: str) -> bool:
    """Add a work tree at `path` on `branch`, which is created if it does not exist. True when reading back confirms it."""
    repository = run.repository
    if repository.is_part:
        raise PathOutOfScope("A work tree would hold the whole repository, of which this scope is a part only.")
    check_branch(run, branch)
    with held(path.parent) as parent:
        if not parent.is_folder:
            raise NotFound(f"{path.parent.shown} is not a folder.", path=path.parent.shown)
        try:
            os.lstat(path.name, dir_fd=parent.fd)
            raise AlreadyExists(f"{path.shown} exists already.", path=path.shown)
        except FileNotFoundError:
            pass
        _check_owner_of_place(parent.path.child(path.name))
        exists = run("show-ref", "--verify", "--quiet", f"refs/heads/{branch}", allowed=(0, 1)).code == 0
        _refuse_uncovering(run, path, f"refs/heads/{branch}" if exists else "HEAD")
        _add(run, parent, path, branch, exists=exists)
        return _is_there(parent.fd, path.name)


def _add(run: GitRun, parent: Held, path: RootedPath, branch: str, *, exists: bool) -> None:
    """Make the folder, have git note it, and fill it. After a failure nothing of that is left.

    A command may exchange the folder with a link at any moment, and git resolves links itself. So the folder is made here and
    held, and no run of git can write both to it and to settings or hooks: neither to the repository's, nor to its own notes.
    """
    with ExitStack() as opened, ExitStack() as undo:
        _make(parent.fd, path)
        undo.callback(_try, os.rmdir, path.name, dir_fd=parent.fd)
        folder = _opened(parent.fd, path.name, opened)
        undo.callback(_try, empty_tree, folder)
        common = run.repository.common
        notes = [_opened(common, name, opened) for name in ("worktrees", "refs", "logs")]
        notes += [_opened(common, "reftable", opened)] if _kind("reftable", common) is not None else []
        if not exists:
            run("branch", "--no-track", "--", branch, "HEAD", writes=notes)
            undo.callback(_try, _delete_branch, run, branch)
        target = f"{_real(parent.fd, parent.path)}/{path.name}"
        others = frozenset(os.listdir(notes[0]))
        undo.callback(_try, _remove_note, notes[0], target, others)
        add = ("worktree", "add", "--quiet", "--no-checkout", "--no-guess-remote", "--", target, branch)
        run(*add, writes=(*notes, folder), no_links=True)
        name = _noted(notes[0], target, others)
        own = _opened(notes[0], name, opened)
        there: dict[str, Any] = {"env": {"GIT_DIR": f"{descriptor_path(common)}/worktrees/{name}"}, "at": folder}
        run("read-tree", "HEAD", writes=(own,), **there)
        run("checkout-index", "--all", "--quiet", writes=(folder,), no_links=True, **there)
        run("update-index", "-q", "--refresh", writes=(own,), no_links=True, allowed=(0, 1), **there)
        # It is complete: nothing is undone.
        undo.pop_all()


def _try(action: Callable[..., object], *args: object, **named: object) -> None:
    with suppress(OSError, LinkError):
        action(*args, **named)


def _delete_branch(run: GitRun, branch: str) -> None:
    # Not in the caller's group: after its cancellation that starts nothing.
    last = GitRun(ProcessGroup(), run.repository, is_fenced=run.is_fenced, memory=run.memory)
    last.drivers = run.drivers
    last("update-ref", "-d", f"refs/heads/{branch}", writes=(run.repository.common,))


def _remove_note(notes: int, target: str, others: Collection[str]) -> None:
    remove_tree(notes, _noted(notes, target, others))


def _make(parent: int, path: RootedPath) -> None:
    try:
        os.mkdir(path.name, dir_fd=parent)
    except FileExistsError:
        raise AlreadyExists(f"{path.shown} exists already.", path=path.shown) from None


def _opened(folder: int, name: str, opened: ExitStack) -> int:
    """Hold a folder, made where it is missing."""
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    try:
        found = os.open(name, _FOLDER, dir_fd=folder)
    except OSError as error:
        raise Conflict("The folder was replaced while the work tree was made.") from error
    opened.callback(os.close, found)
    return found


def _noted(notes: int, target: str, others: Collection[str]) -> str:
    """The name under which git has just noted a work tree; `others` were there before."""
    for name in set(os.listdir(notes)).difference(others):
        with suppress(OSError):
            fd = os.open(f"{name}/gitdir", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=notes)
            with os.fdopen(fd, "rb") as file:
                if file.read(_MAX_PATH) == os.fsencode(f"{target}/.git\n"):
                    return name
    raise Conflict("The folder was replaced while the work tree was made.")


def _kind(name: str, folder: int) -> int | None:
    try:
        return os.lstat(name, dir_fd=folder).st_mode
    except FileNotFoundError:
        return None


def _refuse_uncovering(run: GitRun, place: RootedPath, branch: str) -> None:
    """Refuse a work tree in which a file lies open that the scope's rules close where it is now."""
    if not place.rules.denied:
        return
    names = run("ls-tree", "-r", "-z", "--full-tree", "--name-only", branch, allowed=(0, 128), limit=_MAX_NAMES)
    if names.is_cut:
        raise LimitExceeded("The branch has too many files to find those that the scope's rules close.")
    above = run.repository.above
    for name in names.out.split(b"\0")[:-1]:
        parts = tuple(os.fsdecode(name).split("/"))
        if is_hidden_by((*above, *parts), place.rules) and not is_hidden_by((*place.parts, *parts), place.rules):
            raise PermissionDenied(
                f"A work tree would show {run.repository.shown((*above, *parts))}, which this scope's policy denies.",
                path=place.shown,
                rule="denied",
            )


def _check_owner_of_place(path: RootedPath) -> None:
    # Inside the git folder a work tree would overwrite git's own data.
    if ".git" in (name.casefold() for name in path.parts):
        raise PathOutOfScope("A work tree cannot lie inside a git folder.", path=path.shown)


def _real(fd: int, path: RootedPath) -> str:
    try:
        return descriptor_path(fd)
    except OSError:
        return "/".join((os.path.realpath(path.root), *path.parts))


def _is_there(parent: int, name: str) -> bool:
    try:
        os.lstat(f"{name}/.git", dir_fd=parent)
    except OSError:
        return False
    return True


def _shown(run: GitRun, path: str) -> str | None:
    place = run.repository.place
    root = Path(os.path.realpath(place.root))
    try:
        parts = Path(os.path.realpath(path)).relative_to(root).parts
    except ValueError:
        return None
    return run.repository.shown(parts) or "."
