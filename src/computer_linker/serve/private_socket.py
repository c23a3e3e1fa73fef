"""The private socket: authenticates connections, serves MCP or control on them, and tracks when the service is idle."""

import asyncio
import logging
import re
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from hmac import compare_digest
from typing import Any

import anyio
from pydantic_core import to_json

from computer_linker import home as places
from computer_linker.dispatch.live_sessions import LiveSessions
from computer_linker.errors import CannotServe, LinkError
from computer_linker.model.ids import new_handle
from computer_linker.model.json_text import read_json
from computer_linker.model.principal import Principal
from computer_linker.registry.context import Progress
from computer_linker.serve.owner_calls import owner_principal
from computer_linker.system import channel, os, user_name
from computer_linker.transports.local_callers import WRONG_KEY, LocalCallers
from computer_linker.transports.mcp.fast_path import Begun, FastPath, Negotiated
from computer_linker.transports.mcp.pipes import Pipes
from computer_linker.transports.mcp.profiles import Requested, requested_in_greeting
from computer_linker.transports.mcp.wire import Wire

log = logging.getLogger(__name__)

_GREETING_DEADLINE_S = 10
_MAX_GREETING = 256
_MAX_CONTROL = 16 * 1024 * 1024
_SIZES = re.compile(r"\d{1,7},\d{1,7},\d{1,10}", re.ASCII)

Control = Callable[[dict[str, Any], Principal, Progress], Awaitable[dict[str, Any]]]


class PrivateSocket:
    """Accepts the owner's own programs: same user by SO_PEERCRED, not started by this service, and holding its key."""

    def __init__(
        self,
        listener: socket.socket,
        fast_path: FastPath,
        control: Control,
        callers: LocalCallers,
        key: bytes,
        sessions: LiveSessions,
    ) -> None:
        self._listener = listener
        self._callers, self._key, self._sessions = callers, key, sessions
        self._fast_path = fast_path
        self._control = control
        self._connections: set[asyncio.Task[None]] = set()
        self.last_active = time.monotonic()

    @property
    def connections(self) -> int:
        return len(self._connections)

    async def serve(self) -> None:
        """Accept until cancelled."""
        loop = asyncio.get_running_loop()
        self._listener.setblocking(False)
        while True:
            link, _ = await loop.sock_accept(self._listener)
            task = loop.create_task(self._welcome(link))
            self._connections.add(task)
            task.add_done_callback(self._gone)

    async def close(self) -> None:
        """Close all connections."""
        for task in list(self._connections):
            task.cancel()
        if self._connections:
            await asyncio.wait(list(self._connections), timeout=10)

    def _gone(self, task: asyncio.Task[None]) -> None:
        self._connections.discard(task)
        self.last_active = time.monotonic()
        if not task.cancelled() and task.exception() is not None:
            log.error("a local connection failed", exc_info=task.exception())

    async def _welcome(self, link: socket.socket) -> None:
        with link:
            link.setblocking(False)
            if (reason := await self._callers.refusal(link)) is not None:
                await _refuse(link, reason)
                return
            challenge = places.CHALLENGE + secrets.token_hex(32).encode()
            descriptors: list[int] = []
            try:
                async with asyncio.timeout(_GREETING_DEADLINE_S):
                    await asyncio.get_running_loop().sock_sendall(link, challenge + b"\n")
                    line = await _greeting(link, descriptors)
                greeting, _, given = line.rpartition(b" ")
                if compare_digest(given, places.proof(self._key, challenge, greeting)):
                    await self._serve(link, greeting, descriptors)
                elif line:
                    await self._callers.note(link, "wrong_key")
                    await _refuse(link, WRONG_KEY)
            except (BrokenPipeError, ConnectionResetError):
                # Closed by the other end, as by a program that only looks whether a service listens.
                return
            finally:
                for fd in descriptors:
                    os.close(fd)

    async def _serve(self, link: socket.socket, greeting: bytes, descriptors: list[int]) -> None:
        await asyncio.get_running_loop().sock_sendall(link, places.WELCOME + b"\n")
        name, choices = places.read_greeting(greeting)
        asked = requested_in_greeting(choices)
        if name == places.GREETING_FDS and len(descriptors) == 2:
            async with asyncio.timeout(_GREETING_DEADLINE_S):
                begun = await _begun(link, choices.get("early", ""))
            await self._serve_descriptors(link, (descriptors[0], descriptors[1]), asked, begun)
        elif name == places.GREETING_STREAM:
            await self._serve_mcp(link, asked, Begun())
        elif greeting == places.GREETING_CONTROL:
            await self._serve_control(link)

    async def _serve_descriptors(
        self, link: socket.socket, pipes: tuple[int, int], asked: Requested, begun: Begun
    ) -> None:
        """Serve on the client's own pipes; the shim's socket only shows that the shim is alive."""
        loop = asyncio.get_running_loop()
        wire = loop.create_task(self._serve_mcp(pipes, asked, begun))
        shim = loop.create_task(loop.sock_recv(link, 1))
        try:
            await asyncio.wait([wire, shim], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (wire, shim):
                task.cancel()
            await asyncio.wait([wire, shim], timeout=15)
            try:
                link.send(b"bye")
            except OSError:
                pass

    async def _serve_mcp(self, pipes: Pipes, asked: Requested, begun: Begun) -> None:
        """Serve one MCP client until it disconnects, or the owner ends its session."""
        connection = new_handle("conn")
        user = f"local:{user_name(os.getuid())}"

        def principal(negotiated: Negotiated) -> Principal:
            return Principal(user, "local_user", session=connection, connection=connection, client=negotiated.client)

        wire = Wire(self._fast_path, principal, pipes, asked)
        with self._sessions.connected(wire.principal, wire.disconnect):
            await wire.serve(begun)

    async def _serve_control(self, link: socket.socket) -> None:
        """Serve one request of the command line: its progress, then one answer."""
        loop = asyncio.get_running_loop()
        raw = b""
        while not raw.endswith(b"\n"):
            data = await loop.sock_recv(link, 65536)
            if not data or len(raw) > _MAX_CONTROL:
                return
            raw += data
        who = owner_principal()
        answer: dict[str, Any] | None = None
        try:
            with _while_there(link):
                answer = await self._control(read_json(raw), who, _progress(link))
        except LinkError as error:
            answer = {"error": error.message}
        except CannotServe as error:
            answer = {"error": f"{error.message}; {error.hint}"}
        if answer is not None:
            await loop.sock_sendall(link, to_json(answer, by_alias=True) + b"\n")


def _progress(link: socket.socket) -> Progress:
    def report(message: str, current: float | None, total: float | None) -> None:
        # Dropped when the buffer is full: progress must not block, and so small a message is sent whole or not at all.
        with suppress(OSError):
            link.send(to_json({"progress": [message[:500], current, total]}) + b"\n")

    return report


@contextmanager
def _while_there(link: socket.socket) -> Iterator[None]:
    """Cancel the body when the peer closes: a stopped command needs no answer."""
    with anyio.CancelScope() as scope:

        async def watch() -> None:
            with suppress(OSError):
                if await asyncio.get_running_loop().sock_recv(link, 1):
                    return
            # A cancel scope, not the task's cancel(): that would interrupt a step the operation has shielded.
            scope.cancel()

        watcher = asyncio.get_running_loop().create_task(watch())
        try:
            yield
        finally:
            watcher.cancel()


async def _refuse(link: socket.socket, reason: str) -> None:
    with suppress(OSError):
        if reason:
            await asyncio.get_running_loop().sock_sendall(link, places.REFUSED + reason.encode() + b"\n")


async def _greeting(link: socket.socket, descriptors: list[int]) -> bytes:
    """Read the first line, empty when none arrived. A client waits before it sends more.

    Passed descriptors are added to `descriptors`, which the caller closes, also when the line is incomplete.
    """
    line = b""
    while not line.endswith(b"\n") and len(line) < _MAX_GREETING:
        try:
            data, more = channel.receive(link, _MAX_GREETING)
        except BlockingIOError:
            await _readable(link)
            continue
        descriptors += more
        line += data
        if not data:
            break
    return line.rstrip(b"\n")


async def _begun(link: socket.socket, sizes: str) -> Begun:
    """What the shim answered and read of the client before it got here; the greeting has the sizes."""
    if not _SIZES.fullmatch(sizes):
        return Begun()
    answered, waiting, digest = map(int, sizes.split(","))
    raw = bytearray()
    while len(raw) < answered + waiting:
        data = await asyncio.get_running_loop().sock_recv(link, min(65536, answered + waiting - len(raw)))
        if not data:
            raise ConnectionResetError(104, "the shim ended")
        raw += data
    return Begun(bytes(raw[:answered]), bytes(raw[answered:]), digest)


async def _readable(link: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(link.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(link.fileno())
