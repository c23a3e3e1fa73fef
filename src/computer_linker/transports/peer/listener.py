"""The peer listener: one port for links and streams, distinguished by the first byte of a connection."""

import asyncio
import socket
import ssl
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, unix_serve
from websockets.server import ServerProtocol

from computer_linker.transports.peer.bulk import MAGIC
from computer_linker.transports.peer.frames import MAX_FRAME
from computer_linker.transports.tcp_entrance import TcpEntrance

_TLS_HANDSHAKE = 0x16
_MAX_NEW = 64
"""Unauthenticated connections; one more closes another."""
_FIRST_FRAME = 65_536
"""The size limit of a greeting or a pairing; only a paired machine may send more."""
HELLO_S = 10.0
PING_S, PONG_S = 5.0, 10.0
"""A machine that is lost without a close is detected within the sum of the two."""

REFUSED, TOO_SLOW, UNPAIRED = 4000, 4001, 4003
"""Why a link was closed."""

Serve = Callable[[ServerConnection], Awaitable[None]]
Refused = Callable[[str, str], Awaitable[None]]
"""Called with the address and the rule when a connection did not get past the handshake."""


class PeerListener:
    """Accepts connections. An unauthenticated one reaches nothing beyond the TLS handshake."""

    def __init__(
        self,
        context: ssl.SSLContext,
        take_stream: Callable[[socket.socket], None],
        refused: Refused,
        entrance: TcpEntrance | None = None,
    ) -> None:
        self._entrance = entrance
        self._context = context
        self._take_stream = take_stream
        self._refused = refused
        self._listeners: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: Server | None = None
        self._strangers: dict[asyncio.Task[None], str] = {}
        self._greeting: dict[Any, asyncio.Event] = {}

    async def open(self, host: str, port: int, handler: Serve) -> tuple[str, int]:
        """Listen; returns the address. Raises OSError when the address cannot be bound."""
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        for family, _, _, _, address in found[:4]:
            listener = socket.create_server(address[:2], family=family, backlog=128)
            listener.setblocking(False)
            self._listeners.append(listener)
            port = port or listener.getsockname()[1]
        # The library's server only runs the handlers here: the socket it listens on is unreachable.
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

    def known(self, link: ServerConnection) -> None:
        """Mark a link as authenticated; it may now send large frames."""
        if (greeted := self._greeting.get(link.remote_address)) is not None:
            greeted.set()
        # The library named this attribute differently over its versions.
        for limit in ("max_message_size", "max_size"):
            if hasattr(link.protocol, limit):
                setattr(link.protocol, limit, MAX_FRAME)

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(listener)
            except OSError:
                # Out of descriptors, or closed: an immediate retry helps with neither.
                await asyncio.sleep(0.1)
                continue
            if len(self._strangers) >= _MAX_NEW:
                self._evict()
            task = self._begin(self._admit(connection, address))
            self._strangers[task] = str(address[0])
            task.add_done_callback(partial(self._gone, connection))

    def _gone(self, connection: socket.socket, task: asyncio.Task[None]) -> None:
        self._strangers.pop(task, None)
        if task.cancelled():
            # Closed before its task ever ran: nothing else would close the socket.
            connection.close()

    def _evict(self) -> None:
        """Make room: close the oldest unauthenticated connection of the address that has most of them."""
        busiest, _ = Counter(self._strangers.values()).most_common(1)[0]
        oldest = next(task for task, where in self._strangers.items() if where == busiest)
        del self._strangers[oldest]
        oldest.cancel()

    async def _admit(self, connection: socket.socket, address: Any) -> None:
        transport: asyncio.BaseTransport | None = None
        greeted = self._greeting[address] = asyncio.Event()
        try:
            async with asyncio.timeout(HELLO_S):
                if self._entrance is not None and not await self._entrance.admits(connection, str(address[0])):
                    connection.close()
                    return
                first = await _first_bytes(connection)
                if first[:1] == bytes([_TLS_HANDSHAKE]):
                    transport = await self._link(connection, str(address[0]))
                    if transport is not None:
                        await greeted.wait()
                    return
                if first == MAGIC:
                    connection.recv(len(MAGIC))
                    connection.setblocking(True)
                    self._take_stream(connection)
                    return
            connection.close()
        except (TimeoutError, OSError, asyncio.CancelledError):
            if isinstance(transport, asyncio.Transport):
                transport.abort()
            elif transport is None:
                connection.close()
        finally:
            del self._greeting[address]

    async def _link(self, connection: socket.socket, where: str) -> asyncio.BaseTransport | None:
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                self._protocol, connection, ssl=self._context, ssl_handshake_timeout=HELLO_S
            )
            return transport
        except ssl.SSLError as error:
            if "CERTIFICATE" in str(error).upper():
                await self._refused(where, "unpaired")
        except (OSError, TimeoutError):
            pass
        return None

    def _protocol(self) -> ServerConnection:
        assert self._server is not None, "open before anyone is let in"
        return ServerConnection(
            ServerProtocol(max_size=_FIRST_FRAME), self._server, ping_interval=PING_S, ping_timeout=PONG_S, max_queue=32
        )


def _unreachable() -> socket.socket:
    """A bound socket whose name is gone again."""
    with tempfile.TemporaryDirectory() as private:
        holder = socket.socket(socket.AF_UNIX)
        holder.bind(f"{private}/door")
        holder.listen(1)
        return holder


async def _first_bytes(connection: socket.socket) -> bytes:
    """Peek at the first bytes of a connection, leaving them for its handler."""
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
