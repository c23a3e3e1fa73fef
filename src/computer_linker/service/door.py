"""The private socket: who comes in, what they want (MCP or control), and when an on-demand service may end itself."""

import asyncio
import logging
import os
import pwd
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
from computer_linker.errors import CannotServe, LinkError
from computer_linker.model.ids import new_handle
from computer_linker.model.json_text import read_json
from computer_linker.model.principal import Principal
from computer_linker.transports.local_callers import WRONG_KEY, LocalCallers
from computer_linker.transports.mcp.lane import Lane, Talk
from computer_linker.transports.mcp.wire import Wire

log = logging.getLogger(__name__)

_GREETING_DEADLINE_S = 10
_MAX_GREETING = 256
_MAX_CONTROL = 16 * 1024 * 1024

Control = Callable[[dict[str, Any], Principal], Awaitable[dict[str, Any]]]


class Door:
    """Accepts the owner's own programs: of this user, as the kernel says, not started by this service, and knowing its key."""

    def __init__(
        self, listener: socket.socket, lane: Lane, control: Control, callers: LocalCallers, key: bytes
    ) -> None:
        self._listener = listener
        self._callers, self._key = callers, key
        self._lane = lane
        self._control = control
        self._guests: set[asyncio.Task[None]] = set()
        self.last_active = time.monotonic()

    @property
    def guests(self) -> int:
        return len(self._guests)

    async def serve(self) -> None:
        """Accept until cancelled."""
        loop = asyncio.get_running_loop()
        self._listener.setblocking(False)
        while True:
            link, _ = await loop.sock_accept(self._listener)
            task = loop.create_task(self._welcome(link))
            self._guests.add(task)
            task.add_done_callback(self._gone)

    async def close(self) -> None:
        """Send everyone away."""
        for task in list(self._guests):
            task.cancel()
        if self._guests:
            await asyncio.wait(list(self._guests), timeout=10)

    def _gone(self, task: asyncio.Task[None]) -> None:
        self._guests.discard(task)
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
            finally:
                for fd in descriptors:
                    os.close(fd)

    async def _serve(self, link: socket.socket, greeting: bytes, descriptors: list[int]) -> None:
        await asyncio.get_running_loop().sock_sendall(link, places.WELCOME + b"\n")
        if greeting == places.GREETING_FDS and len(descriptors) == 2:
            await self._serve_descriptors(link, *descriptors)
        elif greeting == places.GREETING_STREAM:
            await self._wire(link.fileno(), link.fileno()).serve()
        elif greeting == places.GREETING_CONTROL:
            await self._serve_control(link)

    async def _serve_descriptors(self, link: socket.socket, read_fd: int, write_fd: int) -> None:
        """Serve on the client's own pipes; the shim's socket only tells that the shim is still there."""
        loop = asyncio.get_running_loop()
        wire = loop.create_task(self._wire(read_fd, write_fd).serve())
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

    def _wire(self, read_fd: int, write_fd: int) -> Wire:
        connection = new_handle("conn")
        user = f"local:{_user_name()}"

        def principal(talk: Talk) -> Principal:
            return Principal(user, "local_user", session=connection, connection=connection, client=talk.client)

        return Wire(self._lane, principal, read_fd, write_fd)

    async def _serve_control(self, link: socket.socket) -> None:
        """One request, one answer, for the command line."""
        loop = asyncio.get_running_loop()
        raw = b""
        while not raw.endswith(b"\n"):
            data = await loop.sock_recv(link, 65536)
            if not data or len(raw) > _MAX_CONTROL:
                return
            raw += data
        who = Principal(f"cli:{_user_name()}", "cli", new_handle("cli"), new_handle("conn"), "computer-linker")
        answer: dict[str, Any] | None = None
        try:
            with _while_there(link):
                answer = await self._control(read_json(raw), who)
        except LinkError as error:
            answer = {"error": error.message}
        except CannotServe as error:
            answer = {"error": f"{error.message}; {error.hint}"}
        if answer is not None:
            await loop.sock_sendall(link, to_json(answer, by_alias=True) + b"\n")


@contextmanager
def _while_there(link: socket.socket) -> Iterator[None]:
    """End the body when the other end is closed: a command that was stopped wants nothing any more."""
    with anyio.CancelScope() as scope:

        async def watch() -> None:
            with suppress(OSError):
                if await asyncio.get_running_loop().sock_recv(link, 1):
                    return
            # A scope, not the task's own cancel(): that would tear an operation out of a step it has shielded.
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
    """The first line, empty when none came. A client waits before it sends more.

    What comes with it is added to `descriptors`, which the caller closes, also when the line is never ended.
    """
    line = b""
    while not line.endswith(b"\n") and len(line) < _MAX_GREETING:
        try:
            data, more, flags, _ = socket.recv_fds(link, _MAX_GREETING, 2)
        except BlockingIOError:
            await _readable(link)
            continue
        if flags & socket.MSG_CTRUNC:
            log.warning("descriptors were lost on the way in")
        descriptors += more
        line += data
        if not data:
            break
    return line.rstrip(b"\n")


async def _readable(link: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(link.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(link.fileno())


def _user_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
