"""Processes of a simulated computer: programs are functions, and no real process is started."""

import asyncio
import itertools
import signal as signals
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio

from computer_linker.computer.facets.processes import Child, Echo, Ended, Launch, PtySize, SignalName, Usage
from computer_linker.system import os

if TYPE_CHECKING:
    Program = Callable[["SimulatedChild"], Awaitable[int]]

_FIRST_PID = 5_000
_IGNORED = frozenset({"usr1", "usr2"})
"""Signals that simulated programs ignore."""


class SimulatedProcesses:
    """Starts the configured programs, by their absolute path."""

    def __init__(self, programs: "Mapping[str, Program] | None" = None) -> None:
        self._programs = dict(PROGRAMS if programs is None else programs)
        self._numbers = itertools.count(_FIRST_PID)
        self._children: set[SimulatedChild] = set()

    async def spawn(self, launch: Launch) -> Child:
        child = SimulatedChild(next(self._numbers), launch, self._programs.get(launch.argv[0]), self._children.discard)
        self._children.add(child)
        return child

    async def aclose(self) -> None:
        for child in list(self._children):
            child.kill()
            await child.wait()


class SimulatedChild:
    """One running program. Its streams are real pipes, so that they are read like any other's."""

    def __init__(
        self, pid: int, launch: Launch, program: "Program | None", forget: Callable[["SimulatedChild"], None]
    ) -> None:
        self.pid, self.launch, self._program, self._forget = pid, launch, program, forget
        self.size = launch.pty
        self._ended: Ended | None = None
        self._waiters: list[Callable[[Ended], None]] = []
        self._task: asyncio.Task[None] | None = None
        self._signal: str | None = None
        self.stdin: int | None = None
        self.stderr: int | None = None
        self._input: int | None = None
        if launch.stdin == "pipe" or launch.pty is not None:
            self._input, self.stdin = os.pipe()
        self.stdout, self._output = os.pipe()
        self._errors = self._output
        if launch.pty is None:
            self.stderr, self._errors = os.pipe()
        for fd in {self._input, self.stdin, self.stdout, self.stderr, self._output, self._errors} - {None}:
            os.set_blocking(fd, False)  # type: ignore[arg-type]  # None was taken out

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.launch.argv[1:]

    async def read(self) -> bytes:
        """Read its input; empty at the end."""
        if self._input is None:
            return b""
        await anyio.wait_readable(self._input)
        return os.read(self._input, 65_536)

    async def write(self, data: bytes) -> None:
        """Write to its output."""
        while data:
            await anyio.wait_writable(self._output)
            data = data[os.write(self._output, data) :]

    def go(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(lambda _task: self._has_ended(self._by_signal(self._signal or "SIGKILL")))

    async def wait(self) -> Ended:
        if self._ended is None:
            done = anyio.Event()
            self._waiters.append(lambda _ended: done.set())
            await done.wait()
        assert self._ended is not None
        return self._ended

    def when_ended(self, call: Callable[[Ended], None]) -> None:
        if self._ended is not None:
            call(self._ended)
        else:
            self._waiters.append(call)

    def signal(self, name: SignalName) -> None:
        if name not in _IGNORED and self._ended is None:
            self._signal = self._signal or f"SIG{name.upper()}"
            if self._task is None:
                self._has_ended(self._by_signal(self._signal))
            else:
                self._task.cancel()

    def kill(self) -> None:
        self.signal("kill")

    def echo(self) -> Echo:
        return "none"

    def waits_for_input(self) -> bool | None:
        return None

    def usage(self) -> Usage | None:
        return None if self._ended is not None else Usage(1, 0.0, 0, ())

    def resize(self, size: PtySize) -> None:
        self.size = size

    async def _run(self) -> None:
        if self._program is None:
            self._has_ended(Ended(127, reason="No such file or directory (exec)"))
            return
        try:
            self._has_ended(Ended(await self._program(self)))
        except BrokenPipeError:
            self._has_ended(self._by_signal("SIGPIPE"))

    @staticmethod
    def _by_signal(name: str) -> Ended:
        return Ended(128 + signals.Signals[name], name)

    def _has_ended(self, ended: Ended) -> None:
        if self._ended is not None:
            return
        for fd in {self._input, self._output, self._errors} - {None}:
            with suppress(OSError):
                os.close(fd)  # type: ignore[arg-type]  # None was taken out
        self._ended = ended
        self._forget(self)
        waiters, self._waiters = self._waiters, []
        for call in waiters:
            call(ended)


async def _echo(child: SimulatedChild) -> int:
    await child.write(" ".join(child.arguments).encode() + b"\n")
    return 0


async def _cat(child: SimulatedChild) -> int:
    while data := await child.read():
        await child.write(data)
    return 0


async def _env(child: SimulatedChild) -> int:
    await child.write("".join(f"{name}={value}\n" for name, value in child.launch.env.items()).encode())
    return 0


async def _sleep(child: SimulatedChild) -> int:
    await anyio.sleep(float(child.arguments[0]))
    return 0


async def _true(child: SimulatedChild) -> int:
    return 0


async def _false(child: SimulatedChild) -> int:
    return 1


PROGRAMS: "dict[str, Program]" = {
    "/bin/cat": _cat, "/bin/echo": _echo, "/usr/bin/env": _env, "/bin/sleep": _sleep, "/bin/true": _true, "/bin/false": _false,
}  # fmt: skip
"""The default programs of a simulated computer."""
