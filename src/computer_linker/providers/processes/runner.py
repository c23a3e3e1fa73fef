"""Runs one command from start to end, with a time limit and bounded output, and kills what it leaves behind."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import anyio

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.processes import Child, Confined, Ended, Launch, Measured, NamesChanged, PtySize
from computer_linker.errors import Conflict, ExecutionFailed
from computer_linker.providers.processes.disk_watch import DiskWatch
from computer_linker.providers.processes.rights_watch import RightsWatch
from computer_linker.providers.processes.streams import Feed, HeadTail, Pump, close_streams, drained
from computer_linker.providers.sandbox.boundary import SpawnPlan
from computer_linker.services import Services
from computer_linker.vault.mask import Mask

_GRACE_S = 2.0
_KILLED_WITHIN_S = 15.0
_PROGRESS_EVERY_S = 0.25
_ATTEMPTS = 3
_REACHED = {
    "processes": "The command reached its limit of {0} processes and threads; starting more failed.",
    "memory": "The command, or a part of it, was ended by its memory limit of {1} MB.",
    "disk": "The command was ended because it filled the disk: less than {1} MB were left for the service.",
}
SIGNALS = {129: "SIGHUP", 130: "SIGINT", 131: "SIGQUIT", 132: "SIGILL", 134: "SIGABRT", 135: "SIGBUS", 136: "SIGFPE",
            137: "SIGKILL", 139: "SIGSEGV", 141: "SIGPIPE", 143: "SIGTERM", 153: "SIGXFSZ", 159: "SIGSYS"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limits:
    timeout_s: float
    max_output_bytes: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended and what it printed."""

    exit_code: int
    signal: str | None
    timed_out: bool
    stdout: str
    stderr: str
    truncated: bool
    duration_ms: float
    output_bytes: int
    warnings: tuple[str, ...] = ()
    """Limits it ran into."""
    refused: tuple[str, ...] = ()
    """Planted names that were removed."""


class Runner:
    """Spawns plans. A cancelled run is killed with its process tree."""

    def __init__(
        self, computer: Computer, rights_watch: RightsWatch | None = None, disk_watch: DiskWatch | None = None
    ) -> None:
        self._computer = computer
        self._rights_watch = rights_watch
        self._disk_watch = disk_watch
        self._ended: list[SpawnPlan] = []
        """Plans whose process has ended, to be released once its outcome was returned."""

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services.use(Computer), services.use(RightsWatch), services.use(DiskWatch))

    async def aclose(self) -> None:
        """Release the remaining plans."""
        self._release_ended()

    async def spawn(
        self,
        plan: SpawnPlan,
        env: dict[str, str],
        *,
        stdin: bool = False,
        pty: PtySize | None = None,
    ) -> Child:
        """Start the plan's process; it waits at its gate until `go()`. The plan is released by the caller."""
        launch = Launch(
            argv=plan.argv,
            env=env,
            cwd_fd=plan.cwd_fd,
            stdin="pipe" if stdin else "null",
            pty=pty,
            fds=plan.fds,
            gate=plan.gate,
            wrapped=plan.wrapped,
            kernel=plan.kernel,
            staging=plan.staging,
            client=plan.client,
            limits=plan.limits,
        )
        child = await self._spawned(plan, launch)
        plan.sent()
        if plan.planting is not None and isinstance(child, Confined):
            plan.planting.program = child
        if self._rights_watch is not None and plan.rights is not None:
            self._rights_watch.hold(child, plan.rights)
        if self._disk_watch is not None and isinstance(child, Measured):
            self._disk_watch.hold(child)
        if plan.guard is not None:
            plan.guard(child)
        return child

    async def _spawned(self, plan: SpawnPlan, launch: Launch) -> Child:
        """Spawn the process; where names in its folders change while they are being closed, rescan and retry."""
        promised = (plan.is_partial, plan.warnings)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return await self._computer.processes.spawn(launch)
            except NamesChanged:
                if plan.rescan is None or attempt == _ATTEMPTS:
                    break
                await plan.rescan()
                if (plan.is_partial, plan.warnings) != promised:
                    # The caller was judged by what the first scan could close.
                    break
                launch = replace(launch, staging=plan.staging)
        raise Conflict(
            "Names in the scope's folders kept changing while they were closed off for this command, so it was not started. "
            "Try again once what changes them has ended."
        )

    async def run(
        self,
        plan: SpawnPlan,
        env: dict[str, str],
        limits: Limits,
        *,
        stdin: bytes | None = None,
        before_start: Callable[[], Awaitable[None]] | None = None,
        on_progress: Callable[[str], None] | None = None,
    ) -> Outcome:
        """Run to the end. `before_start` is awaited while the process waits at its gate."""
        try:
            child = await self.spawn(plan, env, stdin=stdin is not None)
            run = _Run(child, limits, on_progress, plan.mask)
            try:
                if before_start is not None:
                    await before_start()
                outcome = await run.to_the_end(stdin)
            finally:
                run.close()
                if not run.is_over:
                    await _killed(child)
        except BaseException:
            plan.release()
            raise
        refused = await self._settled(plan)
        # In the next iteration of the event loop: after the response, and before the next request.
        asyncio.get_running_loop().call_soon(self._release_ended)
        self._ended.append(plan)
        return replace(outcome, refused=tuple(refused)) if refused else outcome

    async def _settled(self, plan: SpawnPlan) -> list[str]:
        """Remove what the command planted. None of its processes run any more."""
        try:
            return await plan.settle_planting()
        except BaseException:
            plan.release()
            raise

    def _release_ended(self) -> None:
        while self._ended:
            self._ended.pop().release()


class _Run:
    """The streams of one run."""

    def __init__(
        self, child: Child, limits: Limits, on_progress: Callable[[str], None] | None, mask: Mask | None = None
    ) -> None:
        self._child = child
        self._limits = limits
        self._on_progress = on_progress
        self._next_progress = 0.0
        self._out, self._err = HeadTail(limits.max_output_bytes), HeadTail(limits.max_output_bytes)
        self._pumps = [Pump(child.stdout, self._take_out, mask=mask)]
        if child.stderr is not None:
            self._pumps.append(Pump(child.stderr, self._err.feed, mask=mask))
        self._feed: Feed | None = None
        self.is_over = False
        """True once the process has ended and been reaped."""

    async def to_the_end(self, stdin: bytes | None) -> Outcome:
        started = time.perf_counter()
        self._child.go()
        if stdin is not None and self._child.stdin is not None:
            self._feed = Feed(self._child.stdin)
            self._feed.write(stdin)
            self._feed.finish()
        ended = await _ended_within(self._child, self._limits.timeout_s)
        timed_out = ended is None
        if ended is None:
            ended = await stopped(self._child, _GRACE_S)
        self.is_over = True
        await drained(self._pumps)
        if ended.reason is not None and not timed_out:
            raise ExecutionFailed(f"The program could not be started: {ended.reason}.")
        return self._outcome(ended, timed_out, (time.perf_counter() - started) * 1000)

    def close(self) -> None:
        close_streams(self._pumps, self._feed, self._child.stdin)

    def _take_out(self, data: memoryview) -> None:
        self._out.feed(data)
        if self._on_progress is not None and (now := time.monotonic()) >= self._next_progress:
            self._next_progress = now + _PROGRESS_EVERY_S
            self._on_progress(self._out.last_line())

    def _outcome(self, ended: Ended, timed_out: bool, duration_ms: float) -> Outcome:
        out_limit, err_limit = _shared(self._limits.max_output_bytes, self._out.kept(), self._err.kept())
        stdout, out_cut = self._out.text(out_limit)
        stderr, err_cut = self._err.text(err_limit)
        return Outcome(
            exit_code=ended.exit_code,
            signal=ended.signal or SIGNALS.get(ended.exit_code),
            timed_out=timed_out,
            stdout=stdout,
            stderr=stderr,
            truncated=out_cut or err_cut,
            duration_ms=round(duration_ms, 3),
            output_bytes=self._out.total + self._err.total,
            warnings=limits_reached(ended),
        )


def limits_reached(ended: Ended) -> tuple[str, ...]:
    """Warnings for the limits a command ran into."""
    warnings = [_REACHED[name].format(value, value >> 20) for name, value in ended.reached]
    if (ended.signal or SIGNALS.get(ended.exit_code)) == "SIGXFSZ":
        warnings.append("The command was ended by its limit on the size of a file.")
    return tuple(warnings)


async def stopped(child: Child, grace_s: float, name: Any = "term") -> Ended:
    """Signal a process, kill it after the grace period, and return how it ended."""
    child.signal(name)
    ended = await _ended_within(child, grace_s)
    if ended is None:
        child.kill()
        ended = await _ended_within(child, _KILLED_WITHIN_S)
    if ended is None:
        raise ExecutionFailed("The process was killed, but the system has not ended it yet.")
    return ended


async def _ended_within(child: Child, seconds: float) -> Ended | None:
    """How the process ended; None when it still runs. Uses a bare timer, because a cancel scope per command is slow."""
    loop = asyncio.get_running_loop()
    exited: asyncio.Future[Ended | None] = loop.create_future()

    def notify(ended: Ended | None) -> None:
        if not exited.done():
            exited.set_result(ended)

    timer = loop.call_later(seconds, notify, None)
    child.when_ended(notify)
    try:
        return await exited
    finally:
        timer.cancel()


async def _killed(child: Child) -> None:
    """Kill what still runs, whatever ended the run."""
    child.kill()
    with anyio.CancelScope(shield=True), anyio.move_on_after(5):
        await child.wait()


def _shared(limit: int, out: int, err: int) -> tuple[int, int]:
    """Divide the limit: each stream gets what it needs, and half when both need more."""
    if out + err <= limit:
        return limit, limit
    for_err = min(err, max(limit // 2, limit - out))
    return limit - for_err, for_err
