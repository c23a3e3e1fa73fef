"""The gate: the only network of a program, where every connection is judged by the name it is for.

A program reaches it as a proxy (HTTP, CONNECT and SOCKS5 on one port), or without knowing of it: inside the program's
network each allowed name has an address of its own, and what connects there is taken for a connection to that name.
"""

import asyncio
import logging
import re
import select
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from computer_linker.model.network import canonical_host, split_host
from computer_linker.providers.network import hello, socks
from computer_linker.providers.network.exchanges import Exchanges
from computer_linker.providers.network.forward import Forward
from computer_linker.providers.network.messages import MAX_HEAD, BadMessage, refusal
from computer_linker.providers.network.opened import Opened, Secrets
from computer_linker.providers.network.passage import Passage, Upstream, connected
from computer_linker.providers.network.pour import join
from computer_linker.providers.network.reach import Reach, Refused
from computer_linker.providers.network.stream import IDLE_S, Ended, Stream
from computer_linker.system import os

log = logging.getLogger(__name__)
_GREETING_S = 15.0
_MAX_CONNECTIONS = 256
_QUEUE = 128
_MAX_LINE = 8192
_BURST, _PER_S = 512, 100.0
"""New connections of one gate: so many at once, then so many a second. Each costs the service's own loop time."""
_RETRY_S = 0.2
"""Wait after a failed accept: there are no descriptors left, which passes."""
_CONNECT = b"CONNECT "
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_SPACES = b"\t\n\v\f\r \x1c\x1d\x1e\x1f\x85\xa0"
"""What some server takes for a space."""
_VERSION = re.compile(rb"[^!-~]HTTP/", re.IGNORECASE)
_METHOD = re.compile(rb"[A-Za-z_-]+[" + _SPACES + rb"]")
_BINARY = re.compile(rb"[\0-\x08\x0e-\x1b\x7f]")
Handle = Callable[[Stream], Awaitable[None]]
"""Serves one connection."""
_FAILURES = (OSError, TimeoutError, Ended, BadMessage, ValueError)


class Gate:
    """Takes connections until it is closed, and reports each."""

    def __init__(
        self,
        reach: Reach,
        report: Callable[[Passage], None] = lambda _passage: None,
        ended: Callable[[], None] = lambda: None,
        secrets: Callable[[str, int], Secrets | None] = lambda _host, _port: None,
    ) -> None:
        self._reach = reach
        self._report = report
        self._ended = ended
        """Called when it is closed and all connections are reported."""
        self._secrets = secrets
        """What a host is opened for; None leaves its TLS closed."""
        self.connected: Callable[[Upstream], None] = lambda _upstream: None
        """Called with each connection to a host before anything goes through it."""
        self._is_closed = False
        self._exchanges: Exchanges | None = None
        self._listeners: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0
        """How many are open."""
        self.port = 0
        self._next_at = 0.0
        """When the next connection is taken, were all since the last pause taken evenly."""
        self.refusals: deque[str] = deque(maxlen=20)
        """Recent refusals: host and reason, never the rest of an address."""

    def listen(self, folder: Path | None) -> None:
        """Take a proxy's clients, at `gate.sock` in the folder or on a free port of this machine."""
        if folder is None:
            listener = socket.create_server(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        else:
            listener = socket.socket(socket.AF_UNIX)
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                # By descriptor, because a socket's path is limited to a hundred characters.
                listener.bind(f"/proc/self/fd/{held}/gate.sock")
            finally:
                os.close(held)
            listener.listen(_QUEUE)
        self.serve(listener, self.greet)

    def serve(self, listener: socket.socket, handle: Handle) -> None:
        """Take connections of a listener, which belongs to the gate from now on."""
        listener.setblocking(False)
        self._listeners.append(listener)
        asyncio.get_running_loop().add_reader(listener.fileno(), self._accept, listener, handle)

    def close(self) -> None:
        """Stop, and end all connections."""
        self._is_closed = True
        for listener in self._listeners:
            asyncio.get_running_loop().remove_reader(listener.fileno())
            listener.close()
        self._listeners.clear()
        if not self._tasks:
            self._end()
        for task in list(self._tasks):
            task.cancel()

    async def aclose(self) -> None:
        self.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)

    def taken_refusals(self) -> list[str]:
        """Refusals since the last call."""
        found = list(dict.fromkeys(self.refusals))
        self.refusals.clear()
        return found

    def refused(self, refused: Refused) -> None:
        """Keep and report a refusal."""
        self.refusals.append(f"{refused.host}: {refused.why}")
        self._report(Passage(refused.host, refused.port, "refused", refused.why, refused.entry))

    def exchanges(self) -> Exchanges | None:
        """What serves plain requests outside the loop; None without epoll, a free descriptor or room for a thread."""
        if self._exchanges is None and not self._is_closed and hasattr(select, "epoll"):
            try:
                self._exchanges = Exchanges(self._reach.is_still_allowed)
            except (OSError, RuntimeError) as error:
                # Tried again at the next request, so that it is not worth a line of the log each.
                log.debug("the gate serves a connection in the loop: %s", error)
        return self._exchanges

    async def judge(self, host: str, port: int) -> tuple[str, list[str]]:
        """The canonical host, and its addresses. Raises Refused, or why there are none; both are reported here."""
        try:
            return await self._reach.judge(host, port)
        except Refused as refused:
            self.refused(refused)
            raise
        except (OSError, TimeoutError) as error:
            self._report(Passage(_canonical(host) or host, port, "failed", type(error).__name__))
            raise

    async def connect(self, host: str, port: int) -> Upstream:
        """A connection to a host that may be reached. Raises Refused or why it failed, which is reported here."""
        host, addresses = await self.judge(host, port)
        try:
            stream = await connected(addresses, port)
        except (OSError, TimeoutError) as error:
            self._report(Passage(host, port, "failed", type(error).__name__))
            raise
        upstream = Upstream(stream, Passage(host, port, "allowed"), self._report)
        self.connected(upstream)
        return upstream

    async def greet(self, client: Stream) -> None:
        """Serve a client of the proxy: the first bytes are those of one of its protocols."""
        client.limit.set(_GREETING_S)
        if not await client.more():
            return
        asked = await _asked(client)
        client.limit.set(None)
        if asked is None:
            await Forward(client, self).run()
            return
        host, port, answers = asked
        try:
            upstream = await self.connect(host, port)
        except Refused as refused:
            await client.send(answers.refused(str(refused), "403 Forbidden"))
        except (OSError, TimeoutError):
            await client.send(answers.refused(f"{host} did not answer.", "502 Bad Gateway"))
        else:
            await self._relay(client, upstream, answers.accepted)

    async def take(self, client: Stream, host: str, port: int) -> None:
        """Serve a client that connected to what stands for this host inside its network."""
        try:
            upstream = await self.connect(host, port)
        except (Refused, OSError, TimeoutError):
            client.reset()
        else:
            await self._relay(client, upstream, b"")

    async def _relay(self, client: Stream, upstream: Upstream, greeting: bytes) -> None:
        """Join a client and its host, once what the client sends first names no other host."""
        try:
            if greeting:
                await client.send(greeting)
            if not await _client_speaks_first(client, upstream.stream):
                await join(client, upstream.stream, upstream.sent, upstream.received)
            elif hello.is_tls(client.held):
                await self._relay_tls(client, upstream)
            elif await _is_http(client):
                await Forward(client, self, upstream).run()
            else:
                await join(client, upstream.stream, upstream.sent, upstream.received)
        finally:
            upstream.close()

    async def _relay_tls(self, client: Stream, upstream: Upstream) -> None:
        host = upstream.passage.host
        name = await _named_in_hello(client)
        if name is not None and _canonical(name) != host:
            upstream.refuse(f"its TLS names {name[:100]}")
            self.refusals.append(f"{host}: its TLS names {name[:100]}")
            await client.send(hello.ALERT)
        elif (secrets := self._secrets(host, upstream.passage.port)) is not None:
            await Opened(self, secrets).serve(client, upstream)
        else:
            await join(client, upstream.stream, upstream.sent, upstream.received)

    def _accept(self, listener: socket.socket, handle: Handle) -> None:
        """Take what waits at a listener, as far as its queue and the pace go."""
        loop = asyncio.get_running_loop()
        for _ in range(_QUEUE):
            now = loop.time()
            if self._next_at > now:
                # The others wait in the kernel's queue, at their program's cost.
                self._rest(listener, handle, self._next_at - now)
                return
            try:
                sock, _ = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                log.warning("the gate took no connection: %s", error)
                self._rest(listener, handle, _RETRY_S)
                return
            self._next_at = max(self._next_at, now - _BURST / _PER_S) + 1 / _PER_S
            if self.connections >= _MAX_CONNECTIONS:
                sock.close()
            else:
                self.begin(sock, handle)

    def _rest(self, listener: socket.socket, handle: Handle, seconds: float) -> None:
        """Take no connection for a while."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(listener.fileno())
        loop.call_later(seconds, self._accept_again, listener, handle)

    def _accept_again(self, listener: socket.socket, handle: Handle) -> None:
        if listener in self._listeners:
            asyncio.get_running_loop().add_reader(listener.fileno(), self._accept, listener, handle)

    def begin(self, sock: socket.socket, handle: Handle) -> None:
        """Serve a connection, which belongs to the gate from now on."""
        client = Stream(sock)
        self.connections += 1
        # Not within the task: one that is cancelled before its first step runs nothing of its own.
        self._start(self._served(client, handle)).add_done_callback(partial(self._let_go, client))

    def _let_go(self, client: Stream, _task: asyncio.Task[None]) -> None:
        self.connections -= 1
        client.close()

    async def _served(self, client: Stream, handle: Handle) -> None:
        try:
            with client.limit.held():
                await handle(client)
        except _FAILURES as error:
            # Bytes may have been forwarded, so that no error response is possible.
            log.debug("a connection of the gate ended: %r", error)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._is_closed and not self._tasks:
            self._end()

    def _end(self) -> None:
        if self._exchanges is not None:
            self._exchanges.close()
            self._exchanges = None
        self._ended()


class _Answers(NamedTuple):
    """What a client is answered whose connection was opened, or was not."""

    accepted: bytes
    refused: Callable[[str, str], bytes]


async def _asked(client: Stream) -> tuple[str, int, _Answers] | None:
    """The host and port that a client wants a connection to; None for one that sends plain HTTP requests."""
    if socks.is_socks(client.held):
        return *await socks.requested(client), _Answers(socks.ACCEPTED, socks.refusal)
    while len(client.held) < len(_CONNECT) and _CONNECT.startswith(client.held) and await client.more():
        pass
    if not client.held.startswith(_CONNECT):
        return None
    head = await client.until(b"\r\n\r\n", MAX_HEAD)
    line = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
    if len(line) != 3 or not line[2].startswith("HTTP/1."):
        raise BadMessage("the first line is not HTTP/1.1")
    answers = _Answers(_ESTABLISHED, refusal)
    try:
        return *split_host(line[1], 443), answers
    except ValueError:
        # Judged, and so refused and reported, under the name that was asked for.
        return line[1], 443, answers


async def _client_speaks_first(client: Stream, server: Stream) -> bool:
    """Wait for the first bytes of either side."""
    if client.held or client.has_more():
        return True
    loop = asyncio.get_running_loop()
    first: asyncio.Future[Stream] = loop.create_future()

    def readable(stream: Stream) -> None:
        if not first.done():
            first.set_result(stream)

    for stream in (client, server):
        loop.add_reader(stream.handed_on().fileno(), readable, stream)
    client.limit.set(IDLE_S)
    try:
        found = await first
    finally:
        for stream in (client, server):
            loop.remove_reader(stream.sock.fileno())
    return found is client and await client.more()


async def _named_in_hello(client: Stream) -> str | None:
    """The server's name of the hello that is held, read on until it is whole."""
    client.limit.set(_GREETING_S)
    while True:
        try:
            return hello.server_name(client.held)
        except IndexError:
            if len(client.held) > hello.MAX_HELLO or not await client.more():
                raise Ended from None
        except hello.Unreadable:
            raise Ended from None


async def _is_http(client: Stream) -> bool:
    """Whether a line with ` HTTP/` comes first, or one too long to tell; blank lines before it count, as servers skip them."""
    client.limit.set(_GREETING_S)
    while True:
        line, ends, _ = client.held.lstrip(_SPACES).partition(b"\n")
        if _VERSION.search(line):
            return True
        # Some servers take any byte in an address, so that one of these tells nothing after a method.
        if ends or (_BINARY.search(line) and not _METHOD.match(line)):
            return False
        if len(line) > _MAX_LINE:
            return True
        if not await client.more():
            return False


def _canonical(name: str) -> str | None:
    try:
        return canonical_host(name)
    except ValueError:
        return None
