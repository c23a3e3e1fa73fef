"""Work trees of a repository: those inside the scope, and new ones beneath it."""

import os
from dataclasses import dataclass
from pathlib import Path

from computer_linker.errors import AlreadyExists, LimitExceeded, NotFound, PathOutOfScope, PermissionDenied
from computer_linker.model.paths import RootedPath
from computer_linker.policy.paths import is_hidden_by
from computer_linker.providers.git.log import check_branch
from computer_linker.providers.git.run import GitRun
from computer_linker.providers.held import held
from computer_linker.system import descriptor_path

_MAX_NAMES = 64 << 20


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
        target = os.path.realpath(f"{_real(parent.fd, parent.path)}/{path.name}")
        exists = run("show-ref", "--verify", "--quiet", f"refs/heads/{branch}", allowed=(0, 1)).code == 0
        _refuse_uncovering(run, path, f"refs/heads/{branch}" if exists else "HEAD")
        args = ["worktree", "add", "--quiet", "--no-guess-remote"]
        args += ["--", target, branch] if exists else ["-b", branch, "--", target]
        run(*args, writes=(repository.git, repository.common, parent.fd), files=True)
        return _is_there(parent.fd, path.name)


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
