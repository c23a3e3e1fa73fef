"""Child processes of the providers: no shell, our environment, their own process group, killed on cancellation."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

import computer_linker
from computer_linker.computer.local.linux.fence import Fence, fence_around, start_without_links
from computer_linker.errors import Aborted
from computer_linker.system import Output, end_group, os, wait_unreaped
from computer_linker.system.limits import cap_memory

# Detects a stalled child process, such as one that reads a pipe without a writer where it expects a file.

STEP_S = 0.5
_BUSY = 0.1
"""The share of one processor that a stalled child may use: some threads poll for work."""


class Stillness:
    """Samples the processor time of a process group. Needs /proc; elsewhere nothing counts as stalled."""

    def __init__(self, group: int, longest_s: float) -> None:
        self._group = group
        self._longest_s = longest_s
        self._seen = 0.0
        self._since = time.monotonic()

    def has_lasted(self) -> bool:
        """True once the group has used hardly any processor time, and not waited for a disk, for `longest_s`."""
        now, used = time.monotonic(), _used_by(self._group)
        if used is None or used - self._seen > _BUSY * (now - self._since):
            self.begin_anew(used or self._seen)
            return False
        return now - self._since >= self._longest_s

    def begin_anew(self, used: float | None = None) -> None:
        """Restart the measurement after output or processor use."""
        self._seen = self._seen if used is None else used
        self._since = time.monotonic()


def _used_by(group: int) -> float | None:
    """Processor seconds of a group; None when one of its threads waits for a disk, or when unknown."""
    total, found = 0, False
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = _fields(place / "stat")
            if fields[2] != str(group):
                continue
            found = True
            if any(_fields(thread / "stat")[0] == "D" for thread in (place / "task").iterdir()):
                return None
            total += int(fields[11]) + int(fields[12])
        except (OSError, IndexError):
            # It ended meanwhile.
            continue
    return total / os.sysconf("SC_CLK_TCK") if found else None


def _fields(place: Path) -> list[str]:
    """The fields after the name in /proc/PID/stat: state, parent, group and so on."""
    return place.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()


T = TypeVar("T")
_MAX_STDERR = 65_536


@dataclass(frozen=True, slots=True)
class Spec:
    """What to run and where; `cwd` names a held folder."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    stdin: int | bytes | None = None
    """A descriptor the child reads from, or bytes to feed it; nothing when None."""
    max_memory: int | None = None
    enter: Callable[[], None] | None = None
    """Called in the thread that starts the child, just before: the child inherits its effect on the thread."""
    longest_still_s: float | None = None
    """Kill a child that is idle for this long while its output is awaited: it opened something that never answers."""
    passed: Sequence[int] = ()
    """Descriptors that the child inherits under the same numbers."""


class Child:
    """A running child. One thread reads and reaps it; any other may kill it."""

    def __init__(self, spec: Spec) -> None:
        self.process = _started(spec) if spec.enter is None else _started_in_own_thread(spec, spec.enter)
        self._lock = threading.Lock()
        self._is_reaped = False
        if spec.max_memory is not None:
            cap_memory(self.process.pid, spec.max_memory)
        if isinstance(spec.stdin, bytes):
            threading.Thread(target=self._feed, args=(spec.stdin,), name="child-stdin", daemon=True).start()
        self._stderr = bytearray()
        limit = spec.longest_still_s
        self._stillness = None if limit is None else Stillness(self.process.pid, limit)
        self.has_stood_still = False
        """True when it was killed for being idle."""
        self._output = Output(self.process)

    def _feed(self, content: bytes) -> None:
        assert self.process.stdin is not None
        with suppress(OSError, ValueError):
            self.process.stdin.write(content)
        with suppress(OSError, ValueError):
            self.process.stdin.close()

    def read(self, size: int = 1 << 18) -> bytes:
        """The next bytes of its output; empty at its end. Its stderr is stored up to a bound."""
        while self._output.is_open:
            found = self._output.next(None if self._stillness is None else STEP_S, size)
            if self._stillness is not None:
                self._check_idle(self._stillness, is_silent=found is None)
            if found is None:
                continue
            name, piece = found
            if name == "stdout" and piece:
                return piece
            if name == "stderr" and len(self._stderr) < _MAX_STDERR:
                self._stderr += piece
        return b""

    def _check_idle(self, stillness: Stillness, *, is_silent: bool) -> None:
        if not is_silent:
            stillness.begin_anew()
        elif stillness.has_lasted():
            self.has_stood_still = True
            self.kill()

    def read_all(self, limit: int) -> tuple[bytes, bool]:
        """Its output up to `limit` bytes, and whether there was more."""
        pieces: list[bytes] = []
        size = 0
        while size <= limit and (piece := self.read()):
            pieces.append(piece)
            size += len(piece)
        whole = b"".join(pieces)
        return whole[:limit], size > limit

    def kill(self) -> None:
        """Kill the whole group."""
        with self._lock:
            if not self._is_reaped:
                end_group(self.process)

    def finish(self) -> tuple[int, bytes]:
        """Wait for its end; its exit code and the start of its stderr."""
        while self.read():
            pass
        # Left unreaped until its group is ended: a reaped id could be reused by then.
        wait_unreaped(self.process.pid)
        self.close()
        return self.process.returncode, bytes(self._stderr[:_MAX_STDERR])

    def close(self) -> None:
        """Kill what still runs, reap it and close its pipes."""
        self.kill()
        with self._lock:
            if self._is_reaped:
                return
            self._is_reaped = True
        self.process.wait()
        self._output.close()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


class ProcessGroup:
    """Kills the child of one piece of work when its caller no longer waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._is_cancelled = False
        self._has_begun = False

    def begin(self) -> None:
        """Mark the work as started. Raises Aborted after `cancel`."""
        with self._lock:
            if self._is_cancelled:
                raise Aborted("The caller no longer waits for this.")
            self._has_begun = True

    @contextmanager
    def running(self, spec: Spec) -> Iterator[Child]:
        """Run a child for the length of the body; `cancel` kills it and prevents new ones."""
        with self._lock:
            if self._is_cancelled:
                raise Aborted("The caller no longer waits for this.")
            child = self._child = Child(spec)
        try:
            yield child
        finally:
            with self._lock:
                self._child = None
            child.close()

    def cancel(self) -> bool:
        """Kill the running child and prevent new ones. True when the work has begun, and so will end."""
        with self._lock:
            self._is_cancelled = True
            if self._child is not None:
                self._child.kill()
            return self._has_begun

    @property
    def is_cancelled(self) -> bool:
        return self._is_cancelled


async def in_process_group(work: Callable[[ProcessGroup], T], limiter: anyio.CapacityLimiter | None = None) -> T:
    """Run blocking `work` in a worker thread. Cancellation kills its child and waits until the work has ended."""
    group = ProcessGroup()
    ended = threading.Event()

    def run() -> T:
        try:
            group.begin()
            return work(group)
        finally:
            ended.set()

    try:
        return await anyio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=limiter)
    except anyio.get_cancelled_exc_class():
        if group.cancel():
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(ended.wait)
        raise


def _started(spec: Spec) -> "subprocess.Popen[bytes]":
    stdin = spec.stdin
    return subprocess.Popen(
        list(spec.argv),
        cwd=spec.cwd,
        env=dict(spec.env),
        stdin=stdin if isinstance(stdin, int) else subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        bufsize=0,
        pass_fds=tuple(spec.passed),
    )


def _started_in_own_thread(spec: Spec, enter: Callable[[], None]) -> "subprocess.Popen[bytes]":
    """Start the child from a fresh thread, because `enter` binds that thread for good."""
    made: list[subprocess.Popen[bytes]] = []
    failed: list[BaseException] = []

    def start() -> None:
        try:
            enter()
            made.append(_started(spec))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=start, name="child-start")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return made[0]


# Landlock rules for the programs that providers run: each reads only what it was given, and executes only itself.

_SYSTEM = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime")


def fenced(spec: Spec, read: Sequence[str | int] = ()) -> Spec:
    """The same child, able to read only `read` and its own program's files; unchanged where the kernel has no Landlock.

    A program that walks a tree by names could be led out of it by a folder swapped for a link. The rules prevent that.
    """
    own = _python_places() if spec.argv[0] == sys.executable else ()
    execute = (os.path.realpath(spec.argv[0]), *loaders())
    return replace(spec, enter=fence_around(Fence((*_SYSTEM, *own, *read), (), execute)))


def without_links(spec: Spec, fence: Fence) -> Spec:
    """The same child with a fence, for which no link below the fence's held folders leads anywhere.

    A fence keeps it in these folders, not away from what is closed in them. Costs the start of an interpreter.
    """
    start = start_without_links(fence)
    if start is None:
        return replace(spec, enter=fence_around(fence))
    return replace(spec, argv=[*start, *spec.argv], passed=fence.held)


@lru_cache(maxsize=1)
def loaders() -> tuple[str, ...]:
    """The system's program loaders, without which nothing linked dynamically starts."""
    return tuple(str(path) for folder in ("/lib64", "/lib") for path in Path(folder).glob("ld-*.so*"))


@lru_cache(maxsize=1)
def _python_places() -> tuple[str, ...]:
    package = Path(computer_linker.__file__).parents[1]
    return tuple(dict.fromkeys((sys.prefix, sys.base_prefix, str(package))))
