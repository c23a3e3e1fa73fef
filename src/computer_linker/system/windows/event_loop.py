"""The event loop of the service on Windows: one that watches sockets.

The loop that Windows has by default (proactor) has no `add_reader`, by which the private channel, the peers and the proxies of
commands read. This one takes up to 512 sockets, and starts no processes of its own: those are in `computer/local/windows`.
"""

import asyncio
import select
import selectors
import signal
import socket
from collections.abc import Callable
from typing import Any, TypeVarTuple

Given = TypeVarTuple("Given")


class ForgettingSelector(selectors.SelectSelector):
    """Forgets a socket that was closed while it was watched, as epoll does; `select` of Windows fails for all of them."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        try:
            return super().select(timeout)
        except OSError:
            for key in list(self.get_map().values()):
                try:
                    select.select([key.fd], [], [], 0)
                except OSError:
                    self.unregister(key.fd)
            return []


class SocketLoop(asyncio.SelectorEventLoop):
    """Watches sockets; for other descriptors, which `select` of Windows cannot wait for, callers have threads."""

    def __init__(self) -> None:
        super().__init__(ForgettingSelector())

    def add_reader(self, fd: Any, callback: Callable[[*Given], Any], *args: *Given) -> None:
        _refuse_pipe(fd)
        super().add_reader(fd, callback, *args)

    def add_writer(self, fd: Any, callback: Callable[[*Given], Any], *args: *Given) -> None:
        _refuse_pipe(fd)
        super().add_writer(fd, callback, *args)


def _refuse_pipe(fd: Any) -> None:
    """Raise NotImplementedError, as the default loop does, for what is no socket."""
    if not isinstance(fd, int):
        return
    try:
        probe = socket.socket(fileno=fd)
    except OSError:
        raise NotImplementedError from None
    probe.detach()


def on_console_signals(loop: asyncio.AbstractEventLoop, stop: Callable[[], object]) -> None:
    """Call `stop` for Ctrl-C and Ctrl-Break. A handler alone would run only after the loop's next event."""
    wakes, woken = socket.socketpair()
    wakes.setblocking(False)
    woken.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGBREAK", signal.SIGINT)):
        signal.signal(number, lambda *_: None)

    def seen(_: socket.socket) -> None:
        if woken.recv(64):
            stop()

    # The loop keeps both ends open.
    loop.add_reader(woken, seen, wakes)
