"""Runs git in a repository: hardened settings, Landlock where available, bounded output."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import anyio

from computer_linker.computer.local.linux.fence import Fence, fence_around
from computer_linker.errors import (
    AlreadyExists,
    Conflict,
    ExecutionFailed,
    InvalidRequest,
    LimitExceeded,
    LinkError,
    NotFound,
)
from computer_linker.model.paths import RootedPath
from computer_linker.providers.child import ProcessGroup, Spec, in_process_group, without_links
from computer_linker.providers.git.program import environment, needed_program, program_places
from computer_linker.providers.git.repository import Memory, Repository, repository_of
from computer_linker.providers.held import held
from computer_linker.services import Services
from computer_linker.system import cwd_of, os

_TABLE: tuple[tuple[str, type[LinkError], str], ...] = (
    (r"index\.lock|\.lock': File exists|cannot lock ref", Conflict, "Another git process holds the repository's lock."),
    (
        r"bad signature|index file corrupt|index file smaller|bad index file|unknown index entry format|index uses",
        ExecutionFailed,
        "The repository's index is damaged. Removing .git/index and resetting rebuilds it.",
    ),
    (r"bad config|bad numeric config|bad boolean config", ExecutionFailed, "The repository's config file is damaged."),
    (r"not a git repository|invalid gitfile", NotFound, "The folder is not a usable git repository."),
    (
        r"bad revision|unknown revision|Needed a single revision|bad object|ambiguous argument|not a valid object name",
        NotFound,
        "There is no such commit.",
    ),
    (r"does not have any commits yet", NotFound, "The branch has no commits yet."),
    (
        r"nothing to commit|nothing added to commit|no changes added",
        Conflict,
        "Nothing is staged. Name the files to git.stage first.",
    ),
    (r"is already checked out|already used by worktree", Conflict, "The branch is checked out in another work tree."),
    (r"already exists", AlreadyExists, "It exists already."),
    (r"did not match any file", NotFound, "A path is not known to git."),
    (r"beyond a symbolic link", InvalidRequest, "A path leads through a link."),
    (r"not a valid branch name|not a valid ref", InvalidRequest, "The branch name is not valid."),
    (
        r"you need to resolve|not possible because you have unmerged|unmerged",
        Conflict,
        "There are unresolved conflicts.",
    ),
    (
        r"object file .* is empty|loose object .* is corrupt|inflate|packfile .* cannot",
        ExecutionFailed,
        "Objects are damaged.",
    ),
    (
        r"unknown repository extension|Expected git repo version",
        ExecutionFailed,
        "This git is too old for the repository.",
    ),
)


def fault_of(err: str, code: int) -> LinkError:
    """The error for git's own message. Neither paths of this machine nor what git read are repeated."""
    for pattern, kind, sentence in _TABLE:
        if re.search(pattern, err, re.IGNORECASE):
            return kind(sentence)
    if code < 0:
        return ExecutionFailed("Git was ended by a signal.", signal=-code)
    return ExecutionFailed("Git failed.", exitCode=code, reason=_first_line(err))


def _first_line(err: str) -> str:
    found = re.search(r"^((?:fatal|error): [^:'\"(]*)", err, re.MULTILINE)
    # Git quotes what it read behind a colon, in quotes or in brackets; absolute paths would reveal this machine's layout.
    return re.sub(r"(?<![\w.])/[^\s]*", "…", found[1]).strip()[:200] if found else ""


T = TypeVar("T")
_MEMORY = 4 << 30
_MAX_OUTPUT = 16 << 20
_STILL_S = 2.5
_MAX_DRIVERS = 256
_READABLE = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime")
Signature = tuple[tuple[int, int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class GitOutput:
    """The result of one git run."""

    out: bytes
    is_cut: bool
    code: int
    err: str


class Git:
    """The git runs of one service, a bounded number at a time."""

    def __init__(self, *, is_fenced: bool = True) -> None:
        self.is_fenced = is_fenced
        self.memory = Memory()
        self._limiter: anyio.CapacityLimiter | None = None
        self._drivers: dict[tuple[int, int], tuple[Signature, tuple[str, ...]]] = {}

    @classmethod
    def open(cls, services: Services) -> "Git":
        return cls()

    async def within(self, folder: RootedPath, work: Callable[["GitRun"], T]) -> T:
        """Run `work` with the repository around a folder, in a worker thread; cancellation kills the child."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(8)
        needed_program()
        return await in_process_group(partial(self._within, folder, work), self._limiter)

    def _within(self, folder: RootedPath, work: Callable[["GitRun"], T], group: ProcessGroup) -> T:
        with held(folder) as place, repository_of(place) as repository:
            run = GitRun(group, repository, is_fenced=self.is_fenced, memory=self.memory)
            run.drivers = self._filters(run)
            return work(run)

    def _filters(self, run: "GitRun") -> tuple[str, ...]:
        """The content filters the repository defines, cached until its settings change."""
        info = os.fstat(run.repository.git)
        key = (info.st_dev, info.st_ino)
        signature = _signature(run.repository)
        known = self._drivers.get(key)
        if signature and known is not None and known[0] == signature:
            return known[1]
        names = _filter_names(run("config", "--list", "--name-only", "--includes", "-z").out)
        if signature:
            if len(self._drivers) > 64:
                self._drivers.clear()
            self._drivers[key] = (signature, names)
        return names


class GitRun:
    """Git in one repository, for one piece of work."""

    def __init__(
        self, group: ProcessGroup, repository: Repository, *, is_fenced: bool = True, memory: Memory | None = None
    ) -> None:
        self.group = group
        self.repository = repository
        self.is_fenced = is_fenced
        self.memory = memory or Memory()
        self.drivers: tuple[str, ...] = ()

    def __call__(
        self,
        *args: str,
        stdin: bytes | None = None,
        limit: int = _MAX_OUTPUT,
        writes: Sequence[int] = (),
        env: Mapping[str, str] | None = None,
        allowed: Sequence[int] = (0,),
        files: bool = False,
        no_links: bool = False,
        at: int | None = None,
    ) -> GitOutput:
        """Run git with these arguments. Raises its error unless the exit code is `allowed`.

        Without `files` it cannot open those of the work tree: where a name in its own folder leads to one of them, which the
        scope may close, the kernel refuses. `no_links` is for what takes contents from the work tree or writes there: a
        command may exchange a file or folder with a link at any moment, and with it no link leads anywhere. `at` is the held
        folder of another work tree, to run in and to read instead.
        """
        tree = self.repository.files if at is None else (at,)
        fence = self._fence(writes, tree if files or no_links else ())
        cwd = self.repository.cwd if at is None else cwd_of(at)
        output = self._run(args, stdin, limit, fence, cwd, env, no_links=no_links)
        if output.code not in allowed and not output.is_cut:
            raise fault_of(output.err, output.code)
        return output

    def _run(
        self,
        args: Sequence[str],
        stdin: bytes | None,
        limit: int,
        fence: Fence,
        cwd: str,
        env: Mapping[str, str] | None,
        *,
        no_links: bool,
    ) -> GitOutput:
        extra = {"GIT_DIR": self.repository.git_dir, "GIT_WORK_TREE": ".", **(env or {})}
        spec = Spec(
            [needed_program(), "--no-pager", *args],
            cwd,
            environment(extra, self.drivers),
            stdin=stdin,
            max_memory=_MEMORY,
            longest_still_s=_STILL_S,
        )
        if self.is_fenced:
            spec = without_links(spec, fence) if no_links else replace(spec, enter=fence_around(fence))
        with self.group.running(spec) as child:
            out, is_cut = child.read_all(limit)
            if is_cut:
                child.kill()
            code, err = child.finish()
            if child.has_stood_still:
                raise ExecutionFailed(
                    "git waited for a file that never answers, so it was ended: a pipe, or something like it, lies where the "
                    "repository has a file of its settings or its state."
                )
        return GitOutput(out, is_cut, code, err.decode("utf-8", "replace"))

    def _fence(self, writes: Sequence[int], tree: Sequence[int]) -> Fence:
        repository = self.repository
        reads: tuple[str | int, ...] = (*_READABLE, *repository.data, *tree)
        return Fence(reads, tuple(writes), program_places(), (repository.top,) if tree else ())


def _signature(repository: Repository) -> Signature:
    """A cache key for the settings; empty when they include files that are not checked here."""
    marks: list[tuple[int, int, int, int] | None] = []
    for folder, name in ((repository.git, "config.worktree"), (repository.common, "config")):
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
        except FileNotFoundError:
            marks.append(None)
            continue
        except OSError:
            return ()
        try:
            info = os.fstat(fd)
            if info.st_size > 1 << 20 or b"include" in os.read(fd, 1 << 20).lower():
                return ()
            marks.append((info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns))
        finally:
            os.close(fd)
    return tuple(marks)


def _filter_names(out: bytes) -> tuple[str, ...]:
    names: set[str] = set()
    for raw in out.split(b"\0"):
        key = os.fsdecode(raw)
        if key.startswith("filter.") and key.count(".") >= 2:
            names.add(key[len("filter.") : key.rindex(".")])
    if len(names) > _MAX_DRIVERS:
        raise LimitExceeded(f"The repository defines more than {_MAX_DRIVERS} content filters.")
    if any("\n" in name for name in names):
        raise ExecutionFailed("The repository defines a content filter that cannot be turned off.")
    return tuple(sorted(names))
