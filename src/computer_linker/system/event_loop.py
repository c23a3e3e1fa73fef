"""The event loop of the service, which goes on where the kernel gives it no further epoll watch."""

import asyncio
import errno
import logging
import select
import selectors
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

T = TypeVar("T")
log = logging.getLogger(__name__)
_REPORT_S = 60.0

if sys.platform == "linux":

    class PollingSelector(selectors.EpollSelector):
        """epoll, and poll for what the kernel refuses to watch.

        The kernel bounds the watches of all programs of a user together (`fs.epoll.max_user_watches`), so that a single command
        can take them all. poll needs none.
        """

        def __init__(self) -> None:
            super().__init__()
            self.polled = 0
            self._reported = -_REPORT_S
            self._poll = selectors.PollSelector()
            self._poll.register(self.fileno(), selectors.EVENT_READ)

        def register(self, fileobj: "FileDescriptorLike", events: int, data: Any = None) -> selectors.SelectorKey:
            try:
                return super().register(fileobj, events, data)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.ENOMEM):
                    raise
                self._report(error)
            key = self._poll.register(fileobj, events, data)
            self.polled += 1
            return key

        def unregister(self, fileobj: "FileDescriptorLike") -> selectors.SelectorKey:
            if not self._is_polled(fileobj):
                return super().unregister(fileobj)
            self.polled -= 1
            return self._poll.unregister(fileobj)

        def modify(self, fileobj: "FileDescriptorLike", events: int, data: Any = None) -> selectors.SelectorKey:
            if not self._is_polled(fileobj):
                return super().modify(fileobj, events, data)
            return self._poll.modify(fileobj, events, data)

        def get_map(self) -> "Mapping[FileDescriptorLike, selectors.SelectorKey]":
            watched = super().get_map()
            return {**self._poll.get_map(), **watched} if self.polled else watched

        def get_key(self, fileobj: "FileDescriptorLike") -> selectors.SelectorKey:
            return self._poll.get_key(fileobj) if self._is_polled(fileobj) else super().get_key(fileobj)

        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            if not self.polled:
                return super().select(timeout)
            ready = self._poll.select(timeout)
            return [found for found in ready if found[0].fd != self.fileno()] + super().select(0)

        def close(self) -> None:
            self._poll.close()
            super().close()

        def _report(self, error: OSError) -> None:
            if time.monotonic() - self._reported >= _REPORT_S:
                self._reported = time.monotonic()
                log.warning("the kernel gives no further epoll watches to this user's programs (%s)", error.strerror)

        def _is_polled(self, fileobj: "FileDescriptorLike") -> bool:
            return self.polled > 0 and fileobj in self._poll.get_map()


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine to its end on a loop of its own."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop for the service."""
    if sys.platform == "linux":
        return asyncio.SelectorEventLoop(PollingSelector())
    if sys.platform == "win32":
        from computer_linker.system.windows.event_loop import SocketLoop

        return SocketLoop()
    return asyncio.new_event_loop()


def on_stop_signals(stop: Callable[[], object]) -> None:
    """Call `stop` on the running loop when a signal asks this process to end."""
    loop = asyncio.get_running_loop()
    if sys.platform == "win32":
        from computer_linker.system.windows.event_loop import on_console_signals

        on_console_signals(loop, stop)
    else:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, stop)


def has_hung_up(fd: int) -> bool:
    """Whether the reader of what is written there is gone. On Windows only a failed write shows it."""
    if sys.platform == "win32":
        return False
    poller = select.poll()
    poller.register(fd, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poller.poll(0))
