"""Sockets of the HTTP server: bind, run uvicorn on them, and the extra loopback port of a tunnel."""

import asyncio
import contextlib
import errno
import logging
import socket
import time
from collections.abc import Iterator
from typing import Any

from computer_linker.errors import CannotServe
from computer_linker.transports.tcp_entrance import TcpEntrance

_LINES_PER_MINUTE = 5


class TunnelListener:
    """A loopback port for a tunnel alone, served until it is closed."""

    def __init__(self, app: Any, port: int, entrance: TcpEntrance, *, has_own_name: bool) -> None:
        listener = bind("127.0.0.1", port)
        self.port: int = listener.getsockname()[1]
        self.has_own_name = has_own_name
        self._stop = asyncio.Event()
        self._serving = asyncio.create_task(serve(app, listener, entrance, self._stop))

    async def aclose(self) -> None:
        """Close the port and its connections."""
        self._stop.set()
        await asyncio.wait([self._serving], timeout=10)
        self._serving.cancel()


async def serve(app: Any, listener: socket.socket, entrance: TcpEntrance, stop: asyncio.Event | None = None) -> None:
    """Serve the ASGI application on the socket until cancelled, or until `stop` is set."""
    import uvicorn

    from computer_linker.transports.http.connections import protocol

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            # The service handles signals, and ends this server by cancelling it.
            yield

    _limit_log()
    config = uvicorn.Config(
        app, http=protocol(entrance), ws="none", lifespan="off", log_config=None, log_level="warning",
        access_log=False, server_header=False, date_header=False, timeout_keep_alive=75, proxy_headers=False,
        timeout_graceful_shutdown=5,
    )  # fmt: skip
    server = Server(config)
    watch = asyncio.create_task(_exit_on(stop, server)) if stop is not None else None
    try:
        await server.serve(sockets=[listener])
    finally:
        if watch is not None:
            watch.cancel()
        listener.close()


async def _exit_on(stop: asyncio.Event, server: Any) -> None:
    await stop.wait()
    server.should_exit = True


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises CannotServe."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Its connections inherit it. asyncio sets it only where the protocol's number is given.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise CannotServe(
                f"port {port} is in use by another program",
                f"choose another, such as: --port {_free_after(host, port)}",
            ) from error
        raise CannotServe(f"cannot listen on {host}:{port}: {error.strerror}", "choose another host or port") from error
    listener.listen(1024)
    return listener


def _free_after(host: str, port: int) -> int:
    """A port near the requested one that could be bound just now; not the next one, where the peer listener is."""
    for other in range(port + 2, min(port + 100, 65536)):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
            try:
                probe.bind((host, other))
            except OSError:
                continue
            return other
    return 0


class LogRateLimit(logging.Filter):
    """Passes the first lines of each kind in every minute, so that bad requests cannot fill the log.

    A later line has the count of dropped ones.
    """

    def __init__(self) -> None:
        super().__init__()
        self._minute = 0
        self._seen: dict[str, int] = {}
        self._left_out: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute, self._seen = minute, {}
        kind = str(record.msg)
        count = self._seen[kind] = self._seen.get(kind, 0) + 1
        if count > _LINES_PER_MINUTE and record.levelno < logging.ERROR:
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return False
        left_out = self._left_out.pop(kind, 0)
        if left_out:
            record.msg = f"{kind} ({left_out} more before it)"
        return True


def _limit_log() -> None:
    log = logging.getLogger("uvicorn.error")
    if not any(isinstance(found, LogRateLimit) for found in log.filters):
        log.addFilter(LogRateLimit())
