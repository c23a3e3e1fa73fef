"""One port for links and for the streams beside them: the first byte of a connection says which it is."""

import asyncio
import socket
import ssl
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, unix_serve
from websockets.server import ServerProtocol

from computer_linker.transports.peer.bulk import MAGIC
from computer_linker.transports.peer.frames import MAX_FRAME

_TLS_HANDSHAKE = 0x16
_MAX_NEW = 64
"""Connections that have not shown a key yet; more wait in the system's own queue."""
HELLO_S = 10.0
PING_S, PONG_S = 5.0, 10.0
"""A machine that is gone without a word is noticed within the sum of the two."""

REFUSED, TOO_SLOW, UNPAIRED = 4000, 4001, 4003
"""Why a link was closed."""

Serve = Callable[[ServerConnection], Awaitable[None]]
Refused = Callable[[str, str], Awaitable[None]]
"""Called with the address and the rule when a connection did not get past the handshake."""


class Door:
    """Accepts connections. Nothing of a stranger reaches further than the TLS handshake."""

    def __init__(self, context: ssl.SSLContext, take_stream: Callable[[socket.socket], None], refused: Refused) -> None:
        self._context = context
        self._take_stream = take_stream
        self._refused = refused
        self._listeners: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: Server | None = None
        self._new = asyncio.Semaphore(_MAX_NEW)

    async def open(self, host: str, port: int, handler: Serve) -> tuple[str, int]:
        """Listen; where. Raises OSError when the address cannot be had."""
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        for family, _, _, _, address in found[:4]:
            listener = socket.create_server(address[:2], family=family, backlog=128)
            listener.setblocking(False)
            self._listeners.append(listener)
            port = port or listener.getsockname()[1]
        # The library's server only runs the handlers here: nobody can reach the socket it listens on.
        self._server = await unix_serve(
            handler, sock=_unreachable(), max_size=MAX_FRAME, compression=None, server_header=None, open_timeout=HELLO_S
        )
        for listener in self._listeners:
            self._begin(self._accept(listener))
        name: tuple[str, int] = self._listeners[0].getsockname()[:2]
        return name

    async def aclose(self) -> None:
        """Stop listening and end every link."""
        for task in list(self._tasks):
            task.cancel()
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None

    def _begin(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._new.acquire()
            try:
                connection, address = await loop.sock_accept(listener)
            except OSError:
                # Out of descriptors, or closed: neither gets better by asking at once.
                self._new.release()
                await asyncio.sleep(0.1)
                continue
            self._begin(self._admit(connection, str(address[0])))

    async def _admit(self, connection: socket.socket, where: str) -> None:
        try:
            async with asyncio.timeout(HELLO_S):
                first = await _first_bytes(connection)
                if first[:1] == bytes([_TLS_HANDSHAKE]):
                    await self._link(connection, where)
                elif first == MAGIC:
                    connection.recv(len(MAGIC))
                    connection.setblocking(True)
                    self._take_stream(connection)
                else:
                    connection.close()
        except (TimeoutError, OSError):
            connection.close()
        finally:
            self._new.release()

    async def _link(self, connection: socket.socket, where: str) -> None:
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(
                self._protocol, connection, ssl=self._context, ssl_handshake_timeout=HELLO_S
            )
        except ssl.SSLError as error:
            if "PEER_DID_NOT_RETURN" in str(error) or "CERTIFICATE" in str(error).upper():
                await self._refused(where, "unpaired")
        except (OSError, TimeoutError):
            pass

    def _protocol(self) -> ServerConnection:
        assert self._server is not None, "open before anyone is let in"
        return ServerConnection(
            ServerProtocol(max_size=MAX_FRAME), self._server, ping_interval=PING_S, ping_timeout=PONG_S, max_queue=32
        )


def _unreachable() -> socket.socket:
    """A bound socket whose name is gone again."""
    with tempfile.TemporaryDirectory() as private:
        holder = socket.socket(socket.AF_UNIX)
        holder.bind(f"{private}/door")
        holder.listen(1)
        return holder


async def _first_bytes(connection: socket.socket) -> bytes:
    """What a connection begins with, left in place for whoever takes it."""
    connection.setblocking(False)
    loop = asyncio.get_running_loop()
    while True:
        with suppress(BlockingIOError):
            first = connection.recv(len(MAGIC), socket.MSG_PEEK)
            if not first or first[0] == _TLS_HANDSHAKE or len(first) == len(MAGIC) or not MAGIC.startswith(first):
                return first
        readable = asyncio.Event()
        loop.add_reader(connection.fileno(), readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(connection.fileno())
