"""Runs git in a repository: hardened settings, a fence of the kernel around it where there is one, bounded output."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import anyio

from computer_linker.errors import ExecutionFailed, LimitExceeded
from computer_linker.model.paths import RootedPath
from computer_linker.providers.child import Leash, Spec, on_leash
from computer_linker.providers.git.faults import fault_of
from computer_linker.providers.git.heads import Memory
from computer_linker.providers.git.program import environment, needed_program, program_places
from computer_linker.providers.git.repository import Repository, repository_of
from computer_linker.providers.held import held

T = TypeVar("T")
_MEMORY = 4 << 30
_MAX_OUTPUT = 16 << 20
_STILL_S = 2.5
_MAX_DRIVERS = 256
_READABLE = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime")
Signature = tuple[tuple[int, int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """What one run of git gave."""

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
    def open(cls, services: object) -> "Git":
        return cls()

    async def within(self, folder: RootedPath, work: Callable[["GitRun"], T]) -> T:
        """Do `work` with the repository around a folder, in a worker thread; cancelling ends the child."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(8)
        needed_program()
        return await on_leash(partial(self._within, folder, work), self._limiter)

    def _within(self, folder: RootedPath, work: Callable[["GitRun"], T], leash: Leash) -> T:
        with held(folder) as place, repository_of(place) as repository:
            run = GitRun(leash, repository, is_fenced=self.is_fenced, memory=self.memory)
            run.drivers = self._filters(run)
            return work(run)

    def _filters(self, run: "GitRun") -> tuple[str, ...]:
        """The content filters the repository defines, remembered until its settings change."""
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
    """Git in one repository, for the time of one piece of work."""

    def __init__(
        self, leash: Leash, repository: Repository, *, is_fenced: bool = True, memory: Memory | None = None
    ) -> None:
        self.leash = leash
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
    ) -> Said:
        """Run git with these arguments. Raises what its failure means unless its exit code is `allowed`."""
        said = self._run(args, stdin, limit, writes, env)
        if said.code not in allowed and not said.is_cut:
            raise fault_of(said.err, said.code)
        return said

    def _run(
        self, args: Sequence[str], stdin: bytes | None, limit: int, writes: Sequence[int], env: Mapping[str, str] | None
    ) -> Said:
        repository = self.repository
        extra = {"GIT_DIR": repository.git_dir, "GIT_WORK_TREE": ".", **(env or {})}
        spec = Spec(
            [needed_program(), "--no-pager", *args],
            repository.cwd,
            environment(extra, self.drivers),
            stdin=stdin,
            max_memory=_MEMORY,
            longest_still_s=_STILL_S,
            enter=_fence(repository, writes) if self.is_fenced else None,
        )
        with self.leash.running(spec) as child:
            out, is_cut = child.read_all(limit)
            if is_cut:
                child.kill()
            code, err = child.finish()
            if child.has_stood_still:
                raise ExecutionFailed(
                    "git waited for a file that never answers, so it was ended: a pipe, or something like it, lies where the "
                    "repository has a file of its settings or its state."
                )
        return Said(out, is_cut, code, err.decode("utf-8", "replace"))


def _fence(repository: Repository, writes: Sequence[int]) -> Callable[[], None] | None:
    from computer_linker.computer.local.linux.fence import Fence, fence_around

    return fence_around(Fence((*_READABLE, repository.bounds), tuple(writes), program_places()))


def _signature(repository: Repository) -> Signature:
    """What tells one state of the settings from another; empty when they include files that are not looked at here."""
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
