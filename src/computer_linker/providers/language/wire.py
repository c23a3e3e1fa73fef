"""JSON-RPC over a process's pipes, framed as the Language Server Protocol has it."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import anyio

from computer_linker.errors import ExecutionFailed, LimitExceeded, ProcessNotFound, TimedOut
from computer_linker.providers.processes.streams import Feed

MAX_MESSAGE = 64 << 20
_MAX_HEADER = 4096
_LENGTH = re.compile(rb"content-length:\s*(\d{1,12})", re.IGNORECASE)
CONTENT_MODIFIED, SERVER_CANCELLED = -32801, -32802
METHOD_NOT_FOUND = -32601


class ServerError(ExecutionFailed):
    """The server answered a request with an error."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(f"The language server refused the request: {message[:300]}")
        self.number = number


class Wire:
    """Sends requests and notifications, and matches replies. What the server itself asks goes to `asked`."""

    def __init__(
        self,
        feed: Feed,
        asked: Callable[[str, Any], Any],
        noted: Callable[[str, Any], None],
        broken: Callable[[], None],
    ) -> None:
        self._feed = feed
        self._asked, self._noted, self._broken = asked, noted, broken
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._count = 0
        self._data = bytearray()
        self._need = 0
        """Length of the message being read; 0 while its header is read."""
        self.is_open = True

    def notify(self, method: str, params: Any) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method: str, params: Any) -> "asyncio.Future[Any]":
        """Send a request; the future holds its result. What is sent before it is handled before it."""
        if not self.is_open:
            raise ProcessNotFound("The language server has ended.")
        self._count += 1
        waiting: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[self._count] = waiting
        self._send({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params})
        number = self._count
        waiting.add_done_callback(lambda _: self._waiting.pop(number, None))
        return waiting

    async def result(self, waiting: "asyncio.Future[Any]", timeout_s: float) -> Any:
        """The result of a request that was sent; at the timeout or on cancellation the server is asked to stop."""
        number = next((number for number, one in self._waiting.items() if one is waiting), None)
        try:
            with anyio.fail_after(timeout_s):
                return await waiting
        except TimeoutError:
            raise TimedOut(f"The language server did not answer within {timeout_s:g} seconds.") from None
        finally:
            if not waiting.done() or waiting.cancelled():
                waiting.cancel()
                if number is not None and self.is_open:
                    self.notify("$/cancelRequest", {"id": number})

    def close(self) -> None:
        """Fail what still waits."""
        self.is_open = False
        for waiting in list(self._waiting.values()):
            if not waiting.done():
                waiting.set_exception(ProcessNotFound("The language server ended before it answered."))
                # Retrieved, so that one that is not awaited any more is not reported.
                waiting.exception()

    def take(self, piece: memoryview) -> None:
        """Take bytes that the server printed."""
        self._data += piece
        while self.is_open and (message := self._next()) is not None:
            self._handle(message)

    def _next(self) -> bytes | None:
        if self._need == 0:
            end = self._data.find(b"\r\n\r\n")
            if end < 0:
                if len(self._data) > _MAX_HEADER:
                    self._broken()
                return None
            found = _LENGTH.search(bytes(self._data[:end]))
            size = int(found.group(1)) if found is not None else 0
            if not 0 < size <= MAX_MESSAGE:
                self._broken()
                return None
            self._need = size
            del self._data[: end + 4]
        if len(self._data) < self._need:
            return None
        message = bytes(self._data[: self._need])
        del self._data[: self._need]
        self._need = 0
        return message

    def _handle(self, raw: bytes) -> None:
        try:
            message = json.loads(raw)
            if "method" in message and "id" in message:
                self._reply(message["id"], str(message["method"]), message.get("params"))
            elif "method" in message:
                self._noted(str(message["method"]), message.get("params"))
            else:
                self._settle(message)
        except (ValueError, RecursionError, AttributeError, TypeError, LimitExceeded):
            # It does not speak the protocol, or does not read the answers to what it asks.
            self._broken()

    def _reply(self, number: Any, method: str, params: Any) -> None:
        try:
            answer = {"result": self._asked(method, params)}
        except NotImplementedError:
            answer = {"error": {"code": METHOD_NOT_FOUND, "message": method}}
        self._send({"jsonrpc": "2.0", "id": number, **answer})

    def _settle(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        waiting = self._waiting.get(number) if isinstance(number, int) else None
        if waiting is None or waiting.done():
            return
        error = message.get("error")
        if isinstance(error, dict):
            code = error.get("code")
            waiting.set_exception(ServerError(code if isinstance(code, int) else 0, str(error.get("message", ""))))
        else:
            waiting.set_result(message.get("result"))

    def _send(self, message: dict[str, Any]) -> None:
        if self._feed.pending > MAX_MESSAGE:
            raise LimitExceeded("The language server does not read what it is sent.")
        body = json.dumps(message, separators=(",", ":")).encode()
        self._feed.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
