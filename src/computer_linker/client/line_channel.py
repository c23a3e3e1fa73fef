"""The line channel: one JSON message per line over the private socket or pipes, with concurrent requests."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

import anyio
from anyio.abc import ByteStream

from computer_linker import home as places
from computer_linker.client.channel import ClientFailed, Disconnected, Report, report_progress, result_of

_MAX_LINE = 32 * 1024 * 1024


@dataclass(slots=True, eq=False)
class _Waiting:
    """One request in flight."""

    report: Report | None
    done: anyio.Event = field(default_factory=anyio.Event)
    message: dict[str, Any] | None = None


class LineChannel:
    """Numbers requests and resolves each with its reply."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._waiting: dict[int, _Waiting] = {}
        self._numbers = 0
        self._sending = anyio.Lock()
        self._ended = False

    async def request(self, method: str, params: dict[str, Any], report: Report | None) -> dict[str, Any]:
        """The result of one request; an abandoned request is cancelled at the service too."""
        if self._ended:
            raise Disconnected("the service closed the connection")
        self._numbers += 1
        number = self._numbers
        waiting = self._waiting[number] = _Waiting(report)
        try:
            await self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            await waiting.done.wait()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True), anyio.move_on_after(2):
                await self._send(_cancelled(number))
            raise
        finally:
            del self._waiting[number]
        if waiting.message is None:
            raise Disconnected("the service closed the connection")
        return result_of(waiting.message, method)

    async def notify(self, method: str) -> None:
        """Send a notification without parameters."""
        await self._send({"jsonrpc": "2.0", "method": method})

    async def listen(self) -> None:
        """Read messages until the connection ends; requests in flight then fail."""
        pending = bytearray()
        try:
            while True:
                pending += await self._stream.receive(1 << 20)
                if len(pending) > _MAX_LINE:
                    raise ClientFailed("the service sent a line that is too long")
                *lines, rest = bytes(pending).split(b"\n")
                pending = bytearray(rest)
                for line in lines:
                    self._take(json.loads(line))
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        finally:
            self._ended = True
            for waiting in self._waiting.values():
                waiting.done.set()

    def _take(self, message: dict[str, Any]) -> None:
        if "method" in message:
            token = message.get("params", {}).get("progressToken")
            if token in self._waiting:
                report_progress(self._waiting[token].report, message)
            return
        waiting = self._waiting.get(message.get("id", 0))
        if waiting is not None:
            waiting.message = message
            waiting.done.set()

    async def _send(self, message: dict[str, Any]) -> None:
        try:
            # Whole lines: two requests must not interleave.
            async with self._sending:
                await self._stream.send(json.dumps(message, ensure_ascii=False).encode() + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise Disconnected("the service closed the connection") from None

    @property
    def next_number(self) -> int:
        """The number of the next request and of its progress notifications."""
        return self._numbers + 1


def _cancelled(number: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}


@asynccontextmanager
async def over_socket(home: Path | None) -> AsyncIterator[LineChannel]:
    """The private socket of a state folder; an on-demand service is started when none runs."""
    from computer_linker.client.socket_client import start_service

    folder = home or Path(places.state_home())
    greet = partial(places.enter, os.fspath(folder), places.GREETING_STREAM)
    try:
        try:
            link = await anyio.to_thread.run_sync(greet)
        except (FileNotFoundError, ConnectionRefusedError):
            await anyio.to_thread.run_sync(start_service, folder)
            link = await anyio.to_thread.run_sync(greet)
    except PermissionError as error:
        raise ClientFailed(error.strerror) from None
    whole = socket.socket(fileno=link.detach())
    # Where the private channel is no Unix socket, it is joined to one of the loopback (system/windows/channel.py).
    kind = anyio.abc.SocketStream if whole.family == socket.AF_INET else anyio.abc.UNIXSocketStream
    async with await kind.from_socket(whole) as stream, _listening(stream) as channel:
        yield channel


@asynccontextmanager
async def over_stdio(
    home: Path | None, command: list[str] | None, stderr: int | IO[bytes] = subprocess.DEVNULL
) -> AsyncIterator[LineChannel]:
    """Start a program that speaks MCP on its pipes; it ends with the connection."""
    from anyio.streams.stapled import StapledByteStream

    run = command or [sys.executable, "-I", "-m", "computer_linker", "stdio"]
    named = {} if home is None else {"COMPUTER_LINKER_HOME": os.fspath(home)}
    try:
        program = await anyio.open_process(run, env={**os.environ, **named}, stderr=stderr)
    except OSError as error:
        raise ClientFailed(f"{run[0]} cannot be started: {error.strerror}") from error
    assert program.stdin is not None and program.stdout is not None
    async with program:
        stream = StapledByteStream(program.stdin, program.stdout)
        async with _listening(stream) as channel:
            yield channel
        await program.stdin.aclose()
        with anyio.move_on_after(5):
            await program.wait()


@asynccontextmanager
async def _listening(stream: ByteStream) -> AsyncIterator[LineChannel]:
    channel = LineChannel(stream)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(channel.listen)
            try:
                yield channel
            finally:
                group.cancel_scope.cancel()
    except BaseExceptionGroup as several:
        # An exception of the caller's own block is raised unwrapped: the task group is internal.
        if len(several.exceptions) > 1:
            raise
        raise several.exceptions[0] from several.exceptions[0].__cause__
