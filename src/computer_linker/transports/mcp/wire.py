"""One MCP client on a pair of descriptors: newline-delimited JSON, concurrent requests, bounded buffers.

Written on asyncio itself, not anyio: a task group's child costs more than a whole cheap call, and this is the path every local
client takes (see the decision record on the fast path).
"""

import asyncio
import logging
from binascii import crc32
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Literal

import anyio
from pydantic_core import to_json

from computer_linker.approvals.approvals import Approver
from computer_linker.errors import InvalidRequest
from computer_linker.model.json_text import NotJson, read_json
from computer_linker.model.principal import Principal
from computer_linker.model.request_id import first_id_of, id_of, request_id_of
from computer_linker.registry.context import Progress
from computer_linker.system import event_loop
from computer_linker.transports.mcp.dialog import LineDialog, ask_by_result, can_ask
from computer_linker.transports.mcp.fast_path import Begun, FastPath, Negotiated, ToolCall, fault_of
from computer_linker.transports.mcp.list_changes import Subscriptions, wanted
from computer_linker.transports.mcp.offers import OfferRefused
from computer_linker.transports.mcp.pipes import Pipes, ends_of
from computer_linker.transports.mcp.profiles import NOTHING_ASKED, Requested
from computer_linker.transports.mcp.progress import Rising
from computer_linker.transports.mcp.sdk import SdkSession
from computer_linker.transports.mcp.session_note import SessionNote

log = logging.getLogger(__name__)

MAX_LINE = _OUT_LIMIT = 16 * 1024 * 1024
_READ_SIZE, _WRITE_SIZE = 256 * 1024, 1024 * 1024
_MAX_UNDER_WAY = 256

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603


class Wire:
    """Serves one client until its input ends, then cancels its running requests."""

    def __init__(
        self,
        fast_path: FastPath,
        principal: Callable[[Negotiated], Principal],
        pipes: Pipes,
        asked: Requested = NOTHING_ASKED,
    ) -> None:
        """`asked` is what the client's environment chose."""
        self._fast_path, self._principal = fast_path, principal
        self._read_fd, self._write_fd, self._read, self._write = ends_of(pipes)
        self._loop = asyncio.get_running_loop()
        self._negotiated = Negotiated(asked=asked)
        self._pending, self._out = bytearray(), bytearray()
        self._running: dict[str | int, asyncio.Task[None]] = {}
        self._scopes: dict[str | int, anyio.CancelScope] = {}
        self._sending: Literal["idle", "soon", "waiting", "never"] = "idle"
        self._dialog = LineDialog(self._send)
        self._sdk: SdkSession | None = None
        self._closed = self._loop.create_future()
        self._reading = False
        self._who: Principal | None = None
        self._opening = SessionNote(fast_path.tools, self.principal)
        self._subscriptions = Subscriptions(self._send)

    async def serve(self, begun: Begun | None = None) -> None:
        """Return when the client has disconnected and none of its requests run. `begun` is what the shim did of it."""
        self._resume()
        if begun is not None:
            self._go_on(begun)
        try:
            with self._fast_path.tools.list_changes.watched(self.principal, self._outdated):
                await self._closed
        finally:
            await self._end()

    def _go_on(self, begun: Begun) -> None:
        for line in begun.answered.split(b"\n")[:-1]:
            with suppress(NotJson, InvalidRequest):
                self._fast_path.note(read_json(line), self._negotiated)
        self._opening.note(self._negotiated)
        if begun.digest:
            self._fast_path.tools.list_changes.when_tools_are_known(lambda: self._compare(begun.digest))
        if begun.waiting:
            self._received(begun.waiting)

    def _compare(self, digest: int) -> None:
        if digest != crc32(self._fast_path.listed(self._negotiated)):
            self._subscriptions.tools_outdated(is_modern=self._negotiated.era == "modern")

    def _outdated(self) -> None:
        self._subscriptions.resources_changed(is_modern=self._negotiated.era != "handshake")

    async def _listen(self, request_id: str | int, honored: dict[str, bool]) -> None:
        """Hold a subscription until it is cancelled or the connection ends."""
        try:
            with self._scopes[request_id], self._subscriptions.held(request_id, honored):
                # Not the future itself: a cancelled subscription must not cancel it for the connection.
                await asyncio.wait([self._closed])
        finally:
            del self._running[request_id], self._scopes[request_id]

    def _resume(self) -> None:
        if not self._reading and not self._closed.done():
            self._loop.add_reader(self._read_fd, self._readable)
            self._reading = True

    def _pause(self) -> None:
        if self._reading:
            self._loop.remove_reader(self._read_fd)
            self._reading = False

    def _readable(self) -> None:
        try:
            data = self._read(_READ_SIZE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close()
            return
        self._received(data)

    def _received(self, data: bytes) -> None:
        self._pending += data
        if b"\n" not in data:
            if len(self._pending) > MAX_LINE:
                first = first_id_of(bytes(self._pending))
                self._error(first, INVALID_REQUEST, f"A message is at most {MAX_LINE} bytes.")
                self._close()
            return
        *lines, rest = bytes(self._pending).split(b"\n")
        self._pending = bytearray(rest)
        gathers = len(lines) > 1 and self._sending == "idle"
        if gathers:
            # Immediate answers leave in one write after the loop.
            self._sending = "soon"
        for line in lines:
            if line.strip():
                self._message_or_fault(line)
        if gathers:
            self._flush()
        if len(self._running) >= _MAX_UNDER_WAY:
            self._pause()

    def _message_or_fault(self, line: bytes) -> None:
        try:
            self._message(line)
        except Exception:
            # The outermost handler of client input: an internal error must not lose the messages after this one.
            log.exception("a message could not be processed")
            self._error(request_id_of(line), INTERNAL, "Internal error; the service's log has the reason.")

    def _message(self, line: bytes) -> None:
        try:
            message = read_json(line)
        except NotJson as error:
            self._error(None, PARSE_ERROR, error.message)
            return
        except InvalidRequest as error:
            self._error(request_id_of(line), INVALID_REQUEST, error.message)
            return
        if (fault := fault_of(message)) is not None:
            self._error(id_of(message), INVALID_REQUEST, fault)
            return
        if "id" in message and "method" in message:
            self._request(message)
            self._opening.note(self._negotiated)
        else:
            self._notification(message)

    def _request(self, message: dict[str, Any]) -> None:
        request_id = message["id"]
        if type(request_id) not in (str, int):
            self._error(None, INVALID_REQUEST, "A request id is a string or an integer.")
            return
        if type(message["method"]) is not str:
            self._error(request_id, INVALID_REQUEST, "A method is named by a string.")
            return
        params = message.get("params")
        if params is not None and type(params) is not dict:
            self._error(request_id, INVALID_PARAMS, "The parameters of a request are an object.")
            return
        if request_id in self._running:
            self._error(request_id, INVALID_REQUEST, "A request with this id is still under way.")
            return
        if message["method"] == "tools/call":
            call = self._fast_path.tool_call(message, self._negotiated)
            if call is not None:
                if self._answered_directly(request_id, call):
                    return
                self._start(request_id, self._call(request_id, call))
                return
        elif self._fast_path.is_offer(message, self._negotiated):
            self._start(request_id, self._call(request_id, message))
            return
        elif self._fast_path.is_listening(message, self._negotiated):
            self._start(request_id, self._listen(request_id, wanted(message) or {}))
            return
        else:
            answer = self._fast_path.answer(message, self._negotiated)
            if answer is not None:
                self._who = None
                self._send_result(request_id, answer)
                return
            if self._fast_path.is_absent(message, self._negotiated):
                self._error(request_id, METHOD_NOT_FOUND, "Method not found")
                return
        self._pass_to_sdk(message)

    def _start(self, request_id: str | int, work: Coroutine[Any, Any, None]) -> None:
        self._scopes[request_id] = anyio.CancelScope()
        self._running[request_id] = self._loop.create_task(work)

    def _answered_directly(self, request_id: str | int, call: ToolCall) -> bool:
        """Run a call that never suspends without a task, which would cost more than the call."""
        if call.state is not None or not self._fast_path.tools.is_instant(call.name, call.arguments):
            return False
        who = self._who
        if who is None or self._negotiated.era == "modern":
            who = self._who = self._principal(self._negotiated)
        work = self._fast_path.run(call, self._negotiated, who, None, None)
        try:
            work.send(None)
        except StopIteration as done:
            self._send_result(request_id, done.value)
            return True
        work.close()
        raise RuntimeError(f"{call.name} waited although it is said never to")

    async def _call(self, request_id: str | int, call: ToolCall | dict[str, Any]) -> None:
        try:
            who = self._who
            if who is None or self._negotiated.era == "modern":
                who = self._who = self._principal(self._negotiated)
            # A scope, not the task's own cancel(): that would interrupt an operation inside a step it has shielded.
            with self._scopes[request_id] as scope:
                if isinstance(call, dict):
                    result = await self._fast_path.offer(call, self._negotiated, who)
                else:
                    report = None if call.progress_token is None else self._progress(call.progress_token)
                    result = await self._fast_path.run(call, self._negotiated, who, report, self._ask())
            # The protocol: a cancelled request gets no answer.
            if not scope.cancel_called:
                self._send_result(request_id, result)
        except OfferRefused as refused:
            self._error(request_id, refused.code, refused.message)
        except Exception:
            log.exception("a tool call could not be answered")
            self._error(request_id, INTERNAL, "Internal error; the service's log has the reason.")
        finally:
            del self._running[request_id], self._scopes[request_id]
            if not self._reading and len(self._running) < _MAX_UNDER_WAY and len(self._out) < _OUT_LIMIT:
                self._resume()

    def _ask(self) -> Approver | None:
        """The approver for this client's own dialog; None when it has none."""
        if not can_ask(self._negotiated.client_capabilities):
            return None
        return ask_by_result if self._negotiated.era == "modern" else self._dialog.ask

    def _notification(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params")
        if method is None and self._dialog.take(_handle(message.get("id")), message.get("result")):
            return
        if method == "notifications/cancelled" and type(params) is dict:
            scope = self._scopes.get(_handle(params.get("requestId")))
            if scope is not None:
                scope.cancel()
                return
        if self._sdk is not None:
            self._sdk.feed(message)

    def _pass_to_sdk(self, message: dict[str, Any]) -> None:
        if self._sdk is None:
            self._sdk = SdkSession(
                self._fast_path.tools,
                lambda: self._principal(self._negotiated),
                lambda: self._negotiated,
                self._send,
            )
            if self._negotiated.handshake is not None:
                self._sdk.replay(self._negotiated.handshake)
        self._sdk.feed(message)

    def _progress(self, token: Any) -> Progress:
        rising = Rising()

        def report(message: str, current: float | None, total: float | None) -> None:
            params: dict[str, Any] = {"progressToken": token, "progress": rising.next(current), "message": message}
            if total is not None:
                params["total"] = total
            # A client that does not read loses progress, never answers.
            if len(self._out) < 64 * 1024:
                self._send(to_json({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))

        return report

    def _send_result(self, request_id: str | int, result: bytes) -> None:
        self._send(b'{"jsonrpc":"2.0","id":' + to_json(request_id) + b',"result":' + result + b"}")

    def _error(self, request_id: str | int | None, code: int, message: str) -> None:
        self._send(to_json({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}))

    def _send(self, line: bytes) -> None:
        if self._sending == "never":
            return
        self._out += line
        self._out += b"\n"
        if self._sending == "idle":
            # Answers that become ready together leave in one write; a single one is written immediately.
            self._sending = "soon"
            if len(self._running) > 1:
                self._loop.call_soon(self._flush)
            else:
                self._flush()
        if len(self._out) >= _OUT_LIMIT:
            self._pause()

    def _flush(self) -> None:
        """Write the buffer; what the client does not accept yet is written when the descriptor is ready."""
        if self._sending == "never":
            return
        try:
            sent = self._write(memoryview(self._out)[:_WRITE_SIZE])
        except BlockingIOError:
            sent = 0
        except OSError:
            self._stop_sending()
            self._close()
            return
        del self._out[:sent]
        if self._out:
            if self._sending == "soon":
                self._sending = "waiting"
                self._loop.add_writer(self._write_fd, self._flush)
            return
        if self._sending == "waiting":
            self._loop.remove_writer(self._write_fd)
        self._sending = "idle"
        if len(self._running) < _MAX_UNDER_WAY:
            self._resume()

    def _stop_sending(self) -> None:
        """Write nothing more: the descriptor's number may soon be another file's."""
        if self._sending == "waiting":
            self._loop.remove_writer(self._write_fd)
        self._sending = "never"
        self._out.clear()

    def principal(self) -> Principal:
        """The client as it has named itself by now."""
        return self._principal(self._negotiated)

    def disconnect(self) -> None:
        """Answer what runs, then end the connection."""
        self._close()

    def _close(self) -> None:
        self._pause()
        if not self._closed.done():
            self._closed.set_result(None)

    async def _end(self) -> None:
        self._pause()
        tasks = list(self._running.values())
        # The input may end right after the last request (a script piped in): let short calls finish and be answered.
        if tasks and self._out_is_open():
            await asyncio.wait(tasks, timeout=2)
        for scope in self._scopes.values():
            scope.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=10)
        if self._sdk is not None:
            await self._sdk.aclose()
        await self._drain()
        self._stop_sending()

    def _out_is_open(self) -> bool:
        return not event_loop.has_hung_up(self._write_fd)

    async def _drain(self) -> None:
        for _ in range(200):
            if not self._out or not self._out_is_open():
                return
            await asyncio.sleep(0.01)


def _handle(value: Any) -> Any:
    """An id usable as a key; anything else becomes one that no request has."""
    return value if type(value) in (str, int) else None
