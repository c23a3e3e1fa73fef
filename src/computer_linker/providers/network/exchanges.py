"""Plain requests on kept connections, served by a thread of the gate's own: a turn of the event loop costs more than they do.

Only what needs no change and no decision is served here: a request without a body to the host that was judged before, by rules
that are the same still, and an answer that is whole. Everything else goes back to the loop as it came.
"""

import asyncio
import logging
import os
import re
import select
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import lru_cache

from computer_linker.providers.network.passage import Upstream
from computer_linker.providers.network.stream import IDLE_S, Stream

log = logging.getLogger(__name__)
ANSWER_S = 3600.0
"""A large body may take long to send before the answer begins."""
_HEAD, _ANSWER = 8192, 16_384
_IN = getattr(select, "EPOLLIN", 0) | getattr(select, "EPOLLRDHUP", 0)
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}"
_VALUE = rb"[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?"
_OTHER = (
    rb"(?!(?i:(?:connection|host|expect|content-length|transfer-encoding|te|trailer|upgrade|alt-svc):|proxy-|http2-))"
)
"""No field that defines where a message goes or ends, or that belongs to one connection."""
_FIELDS = rb"(?>(?:%b%b: %b|(?i:connection: keep-alive))\r\n)*" % (_OTHER, _TOKEN, _VALUE)
_WHOLE = re.compile(
    rb"HTTP/1\.1 (?!204|304)[2-5][0-9]{2} [\t -~\x80-\xff]*\r\n%b(?i:content-length): ([0-9]{1,5})\r\n%b\r\n"
    % (_FIELDS, _FIELDS)
)


@lru_cache(maxsize=256)
def request_pattern(authority: bytes, *, is_proxy: bool) -> re.Pattern[bytes]:
    """Matches the requests to one host that can go on as they are; of a proxy's, the two groups without the host between."""
    place = re.escape(authority)
    target = rb"http://%b(/(?!/)[!\"$-~]{0,4096}" % place if is_proxy else rb"(/[!-~]{0,4096}"
    return re.compile(
        rb"((?!HEAD |CONNECT )[A-Z]{3,16} )%b HTTP/1\.1\r\n%b(?i:host): %b\r\n%b\r\n)"
        % (target, _FIELDS, place, _FIELDS)
    )


class Exchange:
    """A kept connection and its host's, while the thread serves them.

    Who holds the lock owns every field but `done`, which belongs to the loop. Once `is_over` is set, the loop owns them all.
    """

    def __init__(self, client: Stream, upstream: Upstream, pattern: re.Pattern[bytes], place: tuple[str, int]) -> None:
        self.client, self.upstream = client, upstream
        self.pattern, self.place = pattern, place
        self.lock = threading.Lock()
        self.is_over = False
        self.served = 0
        self.request: bytes | None = None
        """The request that was sent on and is not answered yet."""
        self.answer = b""
        """What has come of its answer."""
        self.unsent = self.untaken = b""
        """What the host did not take at once of a request, and the client of an answer."""
        self.loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self.loop.create_future()
        self.fds = client.sock.fileno(), upstream.stream.sock.fileno()


class Exchanges:
    """The thread and what it serves. It exists from the first connection on until `close`.

    `serve` and `close` belong to the loop, `_run` to the thread. `_by_fd` and `_epoll` are used by both: an entry is made by the
    loop and removed by either, with the lock of its exchange. `_wake` and `_thread` are the loop's; the thread reads one end.
    """

    def __init__(self, is_still_allowed: Callable[[str, int], bool]) -> None:
        """Raises OSError without a free descriptor, and RuntimeError where no further thread can start."""
        self._is_still_allowed = is_still_allowed
        self._by_fd: dict[int, Exchange] = {}
        with ExitStack() as opened:
            self._epoll = opened.enter_context(select.epoll())
            self._wake = os.pipe2(os.O_CLOEXEC)
            for end in self._wake:
                opened.callback(os.close, end)
            self._epoll.register(self._wake[0], select.EPOLLIN)
            self._thread = threading.Thread(target=self._run, name="gate-exchanges", daemon=True)
            self._thread.start()
            self._opened = opened.pop_all()

    async def serve(self, exchange: Exchange) -> None:
        """Serve requests until one needs the loop. What was read and not served is held by the streams then."""
        exchange.client.handed_on()
        exchange.upstream.stream.handed_on()
        exchange.client.limit.set(IDLE_S)
        self._begin(exchange)
        try:
            await exchange.done
        finally:
            with exchange.lock:
                self._end(exchange)

    def close(self) -> None:
        """End the thread, once no exchange is served any more."""
        os.write(self._wake[1], b"\0")
        self._thread.join()
        self._opened.close()

    def _begin(self, exchange: Exchange) -> None:
        with exchange.lock:
            try:
                for fd in exchange.fds:
                    self._by_fd[fd] = exchange
                    self._epoll.register(fd, _IN)
            except OSError:
                # The kernel gives this user no further watch; the loop has another way to wait.
                self._give_back(exchange)

    def _end(self, exchange: Exchange) -> None:
        """Let the sockets go. Called with the lock, so that none is closed while the thread uses it."""
        if exchange.is_over:
            return
        exchange.is_over = True
        for fd in exchange.fds:
            self._by_fd.pop(fd, None)
            with suppress(OSError):
                self._epoll.unregister(fd)

    def _give_back(self, exchange: Exchange) -> None:
        self._end(exchange)
        exchange.upstream.stream.held += exchange.answer
        with suppress(RuntimeError):
            # The loop may be closed already.
            exchange.loop.call_soon_threadsafe(_settle, exchange.done)

    def _run(self) -> None:
        while True:
            ready = dict(self._epoll.poll())
            if self._wake[0] in ready:
                return
            for fd in ready:
                exchange = self._by_fd.get(fd)
                if exchange is not None:
                    with exchange.lock:
                        if not exchange.is_over:
                            self._step(exchange, fd, ready)

    def _step(self, exchange: Exchange, fd: int, ready: dict[int, int]) -> None:
        """Serve what one side sent; give everything back where it is not the plain case."""
        client, host = exchange.fds
        try:
            if exchange.request is None:
                is_served = fd == client and host not in ready and self._request(exchange)
            else:
                # A client that sends more, or ends, while it waits for an answer.
                is_served = fd == host and self._answer(exchange)
        except BlockingIOError:
            return
        except OSError:
            is_served = False
        except Exception:
            # One exchange must not end the thread, which serves all others.
            log.exception("a request is judged in the loop")
            is_served = False
        if not is_served:
            self._give_back(exchange)

    def _request(self, exchange: Exchange) -> bool:
        client, upstream = exchange.client, exchange.upstream
        data = client.sock.recv(_HEAD)
        found = exchange.pattern.fullmatch(data)
        try:
            if found is None or not self._is_still_allowed(*exchange.place):
                client.held += data
                return False
        except Exception:
            # The loop judges it again, where an error ends this connection alone.
            client.held += data
            return False
        sent = found[1] + found[2]
        try:
            count = upstream.stream.sock.send(sent)
        except OSError:
            # It took nothing, so that the request can go to another connection.
            client.held += data
            return False
        upstream.sent(count)
        client.limit.later(ANSWER_S)
        exchange.request, exchange.unsent = sent, sent[count:]
        return not exchange.unsent

    def _answer(self, exchange: Exchange) -> bool:
        client, upstream = exchange.client, exchange.upstream
        piece = upstream.stream.sock.recv(_ANSWER)
        data = exchange.answer + piece if exchange.answer else piece
        found = _WHOLE.match(data)
        size = 0 if found is None else found.end() + int(found[1])
        if found is not None and piece and len(data) < size <= _ANSWER:
            # Many servers send the head alone, and wait until it is acknowledged.
            exchange.answer = data
            upstream.stream.acknowledge()
            return True
        exchange.answer = b""
        if found is None or len(data) != size:
            upstream.stream.held += data
            return False
        upstream.received(int(found[1]))
        exchange.request = None
        exchange.served += 1
        client.limit.later(IDLE_S)
        try:
            count = client.sock.send(data)
        except BlockingIOError:
            count = 0
        exchange.untaken = data[count:]
        return not exchange.untaken


def _settle(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
