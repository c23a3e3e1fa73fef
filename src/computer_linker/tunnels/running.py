"""A running tunnel program: its bounded output line by line, and its termination with all its children."""

import asyncio
import re
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from computer_linker.computer.facets.processes import Child, Ended, Launch
from computer_linker.config.schema import Config, TunnelName
from computer_linker.errors import ExecutionFailed, ProviderUnavailable
from computer_linker.system import os, started_at
from computer_linker.tunnels.base import Detected, Surroundings
from computer_linker.tunnels.program import Wanted, checked, runnable

_MAX_LINE = 4096
_KEPT_LINES = 20
_CHUNK = 8192
_LINES_AT_ONCE = 100
_PAUSE_S = 0.02
_GRACE_S = 5.0
_LAST_WORDS_S = 1.0
_LAST_LINES = 4
_MAX_WORDS = 500
_PASSED_ON = (
    "LANG", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy",
)  # fmt: skip
_SECRET = re.compile(
    r"(?i)(bearer\s+|(token|key|secret)(\s*[\"'=:][\"'=: ]*|\s+(?=[^\s\"',]*\d)))[^\s\"',]{8,}|[A-Za-z0-9_-]{64,}"
)
"""After a mere space only what has a digit is hidden: `Host key verification failed` is prose."""


class Running:
    """One started program. `read_line` is called with each line of its output."""

    def __init__(self, child: Child, read_line: Callable[[str], None]) -> None:
        self._child = child
        self._read_line = read_line
        self.pid = child.pid
        self.pid_started = started_at(child.pid)
        self.lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self.over: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        child.when_ended(lambda ended: None if self.over.done() else self.over.set_result(ended))
        streams = [stream for stream in (child.stdout, child.stderr) if stream is not None]
        self._readers = [_LineReader(stream, self._on_line) for stream in streams]

    @classmethod
    async def start(
        cls, around: Surroundings, argv: tuple[str, ...], env: dict[str, str], read_line: Callable[[str], None]
    ) -> "Running":
        """Start the program in its private folder, with only the environment it needs."""
        passed = {name: around.environment[name] for name in _PASSED_ON if name in around.environment}
        base = {"PATH": "/usr/bin:/bin", "HOME": os.fspath(around.folder), **passed}
        folder = os.open(around.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            child = await around.processes.spawn(Launch(argv, {**base, **env}, cwd_fd=folder, is_tunnel=True))
            running = cls(child, read_line)
            child.go()
        finally:
            os.close(folder)
        return running

    def _on_line(self, line: str) -> None:
        self.lines.append(_SECRET.sub("(hidden)", line))
        self._read_line(line)

    def status(self) -> dict[str, Any]:
        return {"pid": self.pid, "pidStarted": self.pid_started, "output": list(self.lines)}

    async def ended(self) -> str:
        """Wait until it ends; returns the reason."""
        ended = await asyncio.shield(self.over)
        # Its last output may still be in the pipe.
        await asyncio.wait([reader.done for reader in self._readers], timeout=_LAST_WORDS_S)
        how = f"signal {ended.signal}" if ended.signal else f"exit code {ended.exit_code}"
        return ended.reason or f"The program ended with {how}{self.last_output()}"

    def last_output(self) -> str:
        """Return the last output, as the end of an error message."""
        tail = " / ".join(list(self.lines)[-_LAST_LINES:])[-_MAX_WORDS:]
        return f": {tail}" if tail else "."

    async def stop(self) -> None:
        """Terminate it, then kill it: its whole process group, and processes that left the group."""
        try:
            if not self.over.done():
                self._child.signal("term")
                await asyncio.wait([self.over], timeout=_GRACE_S)
            self._child.kill()
            await asyncio.wait([self.over], timeout=_GRACE_S)
        finally:
            self._child.kill()
            for reader in self._readers:
                reader.close()


class _LineReader:
    """Reads a pipe on the event loop in small steps, so that a verbose program blocks only itself.

    A line longer than the bound is cut, and the rest of it dropped.
    """

    def __init__(self, fd: int, on_line: Callable[[str], None]) -> None:
        self._fd, self._on_line = fd, on_line
        self._rest = b""
        self._is_open = True
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(fd, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        *whole, rest = (self._rest + data).split(b"\n")
        for line in whole[:_LINES_AT_ONCE]:
            self._emit(line)
        self._rest = rest[:_MAX_LINE]
        if not data:
            self._emit(self._rest)
            self.close()
        elif len(data) == _CHUNK:
            self._loop.remove_reader(self._fd)
            self._loop.call_later(_PAUSE_S, self._resume)

    def _resume(self) -> None:
        if self._is_open:
            self._loop.add_reader(self._fd, self._read)

    def _emit(self, line: bytes) -> None:
        text = "".join(
            letter if letter.isprintable() else " " for letter in line[:_MAX_LINE].decode("utf-8", "replace")
        )
        if text.strip():
            self._on_line(text.strip())

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self.done.set_result(None)


async def until_connected(connected: asyncio.Event, running: Running, seconds: float) -> None:
    """Wait until the tunnel is connected. Raises ExecutionFailed when the program ends or time runs out."""
    word = asyncio.create_task(connected.wait())
    either: list[asyncio.Future[Any]] = [word, running.over]
    try:
        await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        word.cancel()
    if connected.is_set() and not running.over.done():
        return
    if running.over.done():
        raise ExecutionFailed(await running.ended())
    raise ExecutionFailed(f"The program did not connect within {seconds:.0f} seconds{running.last_output()}")


# The base class of providers that run a program: find, start, read its output, stop.


class ProgramTunnel:
    """A tunnel run by a program. A subclass defines the program, its arguments and how its output is parsed."""

    name: TunnelName
    forwards_owner_token = False

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self._running: Running | None = None
        self._held = ExitStack()
        self.connected = asyncio.Event()
        self.url: str | None = None

    def wanted(self, config: Config) -> Wanted:
        """The program of this provider."""
        raise NotImplementedError

    def command(self, config: Config, port: int) -> tuple[list[str], dict[str, str]]:
        """Its arguments and environment. Raises ProviderUnavailable for missing configuration."""
        raise NotImplementedError

    def read_line(self, line: str) -> None:
        """Parse a line of output: the URL, or that it is connected."""
        raise NotImplementedError

    def detect(self) -> Detected:
        config = self.around.config()
        wanted = self.wanted(config)
        path: str | None = None
        try:
            path = checked(wanted, self._find(wanted), config)
            self.command(config, 0)
            with runnable(wanted, path):
                pass
        except ProviderUnavailable as error:
            return Detected(self.name, False, path, error.message, str(error.details.get("hint", "")))
        return Detected(self.name, True, path)

    async def expose(self, port: int) -> None:
        config = self.around.config()
        wanted = self.wanted(config)
        path = checked(wanted, self._find(wanted), config)
        arguments, env = self.command(config, port)
        program = self._held.enter_context(runnable(wanted, path))
        self._running = await Running.start(self.around, (program, *arguments), env, self.read_line)
        try:
            await self.connect(self._running)
        except BaseException:
            await asyncio.shield(self.stop())
            raise

    async def connect(self, running: Running) -> None:
        """Wait until it is connected."""
        await until_connected(self.connected, running, self.around.connect_s)

    def public_url(self) -> str | None:
        return self.url

    def status(self) -> dict[str, Any]:
        return self._running.status() if self._running is not None else {"pid": None, "pidStarted": None, "output": []}

    def is_connected(self) -> bool:
        return True

    async def ended(self) -> str:
        return await self._running.ended() if self._running is not None else "It was never opened."

    async def stop(self) -> None:
        if self._running is not None:
            await self._running.stop()
        self._held.close()

    def _find(self, wanted: Wanted) -> str | None:
        return None if wanted.path is not None else self.around.find(wanted.name)
