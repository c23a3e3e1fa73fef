"""A proxy that is the browser's only network access, and checks every connection.

Names are resolved here, once, and exactly the checked address is connected to, which defeats DNS rebinding.
"""

import asyncio
import ipaddress
import os
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from computer_linker.providers.browser.reach import Ip, Own, why_closed

_MAX_HEAD = 65_536
_HEAD_S = 15.0
_CONNECT_S = 20.0
_IDLE_S = 300.0
_CLOSE_S = 5.0
_MAX_CONNECTIONS = 256


class Refused(Exception):
    """A refused connection; the text is the reason."""


class Gate:
    """Listens on a socket in a private folder, or on a local port where the browser is not sandboxed."""

    def __init__(self, own: Own, is_open: Callable[[], bool]) -> None:
        self._own = own
        self._is_open = is_open
        self._server: asyncio.Server | None = None
        self._busy: set[asyncio.Task[None]] = set()
        self.port = 0
        self.refusals: deque[str] = deque(maxlen=20)
        """Recent refusals: host and reason, never the rest of an address."""

    async def listen(self, folder: Path | None) -> None:
        """Start accepting connections, at `gate.sock` in the folder or on a free port."""
        if folder is None:
            self._server = await asyncio.start_server(self._taken, "127.0.0.1", 0, limit=_MAX_HEAD)
            self.port = self._server.sockets[0].getsockname()[1]
            return
        listener = socket.socket(socket.AF_UNIX)
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # By descriptor, because a socket's path is limited to a hundred characters.
            listener.bind(f"/proc/self/fd/{held}/gate.sock")
        finally:
            os.close(held)
        self._server = await asyncio.start_unix_server(self._taken, sock=listener, limit=_MAX_HEAD)

    async def aclose(self) -> None:
        """Stop accepting, and close all connections."""
        if self._server is not None:
            self._server.close()
        for task in list(self._busy):
            task.cancel()
        if self._busy:
            await asyncio.wait(self._busy, timeout=5)

    def taken_refusals(self) -> list[str]:
        """Refusals since the last call."""
        found = list(dict.fromkeys(self.refusals))
        self.refusals.clear()
        return found

    async def _taken(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._busy.add(task)
        try:
            await self._carried(reader, writer)
        finally:
            await _closed(writer)
            self._busy.discard(task)

    async def _carried(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if len(self._busy) > _MAX_CONNECTIONS:
                raise Refused("too many connections")
            (host, port), first, greeting = await _destination(reader)
            upstream_reader, upstream = await self._connected(host, port)
        except Refused as refused:
            writer.write(_refusal(str(refused)))
            return
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        upstream.write(first)
        writer.write(greeting)
        both = [asyncio.create_task(_pour(reader, upstream)), asyncio.create_task(_pour(upstream_reader, writer))]
        try:
            # Once bytes were forwarded, a failure just closes the connection: no error response is possible.
            await asyncio.wait(both, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for one in both:
                one.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            await _closed(upstream)

    async def _connected(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address = await self._judged(host, port)
        async with asyncio.timeout(_CONNECT_S):
            return await asyncio.open_connection(address, port, limit=_MAX_HEAD)

    async def _judged(self, host: str, port: int) -> str:
        """The address to connect to. A name with any forbidden address is refused."""
        if not self._is_open():
            raise self._refuse(host, "this scope has no network")
        if host.rstrip(".").lower() in self._own.hosts():
            raise self._refuse(host, "it is this service itself")
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_CONNECT_S):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [str(entry[4][0]) for entry in found]
        for address in addresses:
            ip: Ip = ipaddress.ip_address(address.partition("%")[0])
            if why := why_closed(ip, port, self._own):
                raise self._refuse(host, why)
        if not addresses:
            raise OSError("the name has no address")
        return addresses[0]

    def _refuse(self, host: str, why: str) -> Refused:
        self.refusals.append(f"{host[:100]}: {why}")
        return Refused(f"{host[:100]} is not opened: {why}.")


async def _destination(reader: asyncio.StreamReader) -> tuple[tuple[str, int], bytes, bytes]:
    """The destination of a connection, the bytes to send there first, and the reply to the browser once it is open."""
    async with asyncio.timeout(_HEAD_S):
        head = await reader.readuntil(b"\r\n\r\n")
    line, _, headers = head.partition(b"\r\n")
    method, target, version = line.decode("ascii").split(" ")
    if method == "CONNECT":
        return _host_and_port(f"//{target}", 443), b"", b"HTTP/1.1 200 Connection established\r\n\r\n"
    path = urlsplit(target)._replace(scheme="", netloc="", fragment="").geturl() or "/"
    first = f"{method} {path} {version}\r\n".encode("ascii") + _for_origin(headers)
    return _host_and_port(target, 80), first, b""


def _host_and_port(target: str, port: int) -> tuple[str, int]:
    parts = urlsplit(target)
    if parts.scheme not in ("", "http") or not parts.hostname:
        raise ValueError("not an address of the web")
    return parts.hostname, parts.port or port


def _for_origin(headers: bytes) -> bytes:
    """The headers for the server: one request per connection, and no proxy headers."""
    kept = [
        line
        for line in headers.split(b"\r\n")
        if line and not line.lower().startswith((b"proxy-", b"connection:", b"keep-alive:"))
    ]
    return b"\r\n".join([*kept, b"Connection: close", b"", b""])


async def _pour(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while True:
        async with asyncio.timeout(_IDLE_S):
            piece = await source.read(65_536)
        if not piece:
            break
        sink.write(piece)
        await sink.drain()
    with suppress(OSError, NotImplementedError):
        if sink.can_write_eof():
            sink.write_eof()


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Flush and close within a short time, else abort the connection."""
    writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_CLOSE_S):
            await writer.wait_closed()
            return
    writer.transport.abort()


def _refusal(why: str) -> bytes:
    body = f"Computer Linker: {why}\n".encode()
    head = (
        "HTTP/1.1 403 Forbidden",
        "Content-Type: text/plain; charset=utf-8",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    return "\r\n".join((*head, "", "")).encode() + body
