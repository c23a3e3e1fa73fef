"""Serves a paired machine: its calls go through the dispatcher, with its policy, approval and audit."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from websockets.exceptions import ConnectionClosed

from computer_linker.computer.remote.methods import methods
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.errors import (
    InvalidRequest,
    LimitExceeded,
    LinkError,
    PermissionDenied,
    ProviderUnavailable,
    UnknownOperation,
)
from computer_linker.model.effect import Effect
from computer_linker.model.envelope import Call, Reply, parse_call
from computer_linker.model.ids import new_handle
from computer_linker.model.principal import Principal, parse_far
from computer_linker.transports.peer.acts import Acts, Work, plain
from computer_linker.transports.peer.bulk import Bulk
from computer_linker.transports.peer.facets import FacetRequest
from computer_linker.transports.peer.frames import MAX_BLOBS, MAX_ITEM, packed, pieces_of
from computer_linker.transports.peer.offer import principal_of
from computer_linker.transports.peer.table import Peer, PeerTable

Send = Callable[[bytes], Awaitable[None]]
_MAX_KEPT_BYTES = 64 * 1024
_MAX_UNDER_WAY = 128
_MAX_LARGE = 4
"""Answers with pictures that one link holds at once: a peer that does not read them must not fill our memory."""
_MAX_REPORTS = 16


class HostSession:
    """One link from a paired machine."""

    def __init__(self, dispatchers: "PeerDispatchers", peer: Peer, acts: Acts, send: Send) -> None:
        self._dispatchers = dispatchers
        self._peer = self._known = peer
        self._acts = acts
        self._send = send
        self._connection = new_handle("link")
        self._last_id = 0
        self._reports: set[asyncio.Task[None]] = set()
        self._running: dict[int, tuple[asyncio.Task[None], asyncio.Task[Any]]] = {}
        self._credits: dict[int, asyncio.Semaphore] = {}
        self._large = asyncio.Semaphore(_MAX_LARGE)

    @property
    def who(self) -> Principal:
        """The peer, with what the owner gives it now. Raises PermissionDenied once it is not paired any more."""
        self._known = self._dispatchers.table.paired(self._peer.fingerprint)
        return self.last_known

    @property
    def last_known(self) -> Principal:
        """The peer, with what it had at its last call; for display."""
        return principal_of(self._known, self._connection, self._dispatchers.operations.services.config.scopes)

    async def take(self, frame: dict[str, Any]) -> None:
        """Handle one frame of the peer. Raises what ends the link."""
        try:
            await self._take(frame)
        except (TypeError, ValueError, RecursionError) as error:
            # A frame's content is untrusted: a value may fit no type, or be nested without end.
            raise InvalidRequest("A frame holds what no call can.", rule="malformed_frame") from error

    async def _take(self, frame: dict[str, Any]) -> None:
        call_id = frame.get("id")
        match frame["t"]:
            case "call":
                try:
                    await self._call(frame)
                except (LimitExceeded, ProviderUnavailable) as error:
                    await self._quietly(packed(_refused(frame["id"], error)))
            case "cancel":
                running = self._running.get(call_id) if type(call_id) is int else None
                if running is not None:
                    running[1].cancel()
            case "credit":
                self._credit(call_id, frame.get("n"))
            case _:
                raise InvalidRequest("That frame is not for a host.", rule="malformed_frame")

    async def close(self) -> None:
        """Handle a lost link. Running acts continue to their end, so that a resumed link gets their outcome."""
        for answering, _ in list(self._running.values()):
            answering.cancel()

    async def _call(self, frame: dict[str, Any]) -> None:
        call_id, key = self._checked(frame)
        self._last_id = call_id
        work, is_act = self._work(call_id, frame)
        if is_act:
            digest = hashlib.sha256(
                packed({name: frame[name] for name in ("call", "on", "for") if name in frame})
            ).digest()
            act = self._acts.run(key, digest, work)
            self._running[call_id] = (asyncio.ensure_future(self._answer(call_id, act)), act)
        else:
            observing = asyncio.ensure_future(self._observe(call_id, work, is_large=self._is_large(frame)))
            self._running[call_id] = (observing, observing)

    def _checked(self, frame: dict[str, Any]) -> tuple[int, str]:
        call_id, key = frame.get("id"), frame.get("key")
        if type(call_id) is not int or type(key) is not str or not 8 <= len(key) <= 64 or not 0 < call_id < 1 << 32:
            raise InvalidRequest("A call frame has id, key and call.", rule="malformed_frame")
        if call_id <= self._last_id:
            # Ids only grow on a link: a repeated one is a replayed frame.
            raise PermissionDenied("A frame came a second time.", rule="replayed_frame")
        if len(self._running) >= _MAX_UNDER_WAY:
            raise LimitExceeded("Too many calls are under way on this link.", rule="too_many_calls")
        return call_id, key

    def _work(self, call_id: int, frame: dict[str, Any]) -> tuple[Work, bool]:
        """The function that runs the call, and whether it may change something."""
        value = frame.get("call")
        if type(value) is not dict:
            raise InvalidRequest("A call frame has id, key and call.", rule="malformed_frame")
        if frame.get("on") == "facets":
            return self._facet_work(call_id, value)
        dispatcher, far = self._dispatchers.operations, parse_far(frame.get("for"))
        op = dispatcher.catalog.by_name.get(str(value.get("op")))
        # An unknown operation does nothing, and need not be remembered.
        is_act = op is not None and op.effect is not Effect.OBSERVE

        async def work() -> Reply:
            try:
                call = parse_call(value)
            except InvalidRequest as error:
                return await dispatcher.refuse(value, self.who.behind(far), error)
            ticket = frame.get("bulk")
            if type(ticket) is not bytes:
                return await dispatcher.call(call, self.who.behind(far), self._reporter(call_id))
            with self._dispatchers.bulk.expected(ticket, self._peer.fingerprint) as flow:
                return await dispatcher.call(replace(call, stream=flow), self.who.behind(far), self._reporter(call_id))

        return work, is_act

    def _facet_work(self, call_id: int, value: dict[str, Any]) -> tuple[Work, bool]:
        try:
            request = FacetRequest.parse(value)
        except UnknownOperation as unknown:
            # A peer of a later version may have methods that this one lacks.
            error = unknown
            return (lambda: self._dispatchers.facets.refuse(value, self.who, error)), False
        shown = request.shown
        if request.method.is_stream:
            self._credits[call_id] = asyncio.Semaphore(0)
        request.give = lambda item: self._item(call_id, item)

        async def work() -> Reply:
            call = Call(request.scope, request.method.name, input=shown, confirm=request.confirm, payload=request)
            return await self._dispatchers.facets.call(call, self.who, self._reporter(call_id))

        return work, request.method.is_act

    def _is_large(self, frame: dict[str, Any]) -> bool:
        """Whether an answer may include pictures or whole files."""
        if frame.get("on") == "facets":
            method = methods().get(str(frame["call"].get("method")))
            return method is not None and method.has_blobs
        op = self._dispatchers.operations.catalog.by_name.get(str(frame["call"].get("op")))
        return op is not None and op.boundary == "desktop"

    async def _item(self, call_id: int, item: Any) -> None:
        """Push one item, once the other side has room for it."""
        raw = packed({"t": "item", "id": call_id, "item": item})
        if len(raw) > MAX_ITEM:
            raise LimitExceeded("An item of the stream is too large to be sent.")
        await self._credits[call_id].acquire()
        await self._send(raw)

    def _credit(self, call_id: Any, number: Any) -> None:
        room = self._credits.get(call_id) if type(call_id) is int else None
        if type(number) is not int or not 0 < number <= 1024:
            raise InvalidRequest("A credit is a small number.", rule="malformed_frame")
        for _ in range(number if room is not None else 0):
            room.release()  # type: ignore[union-attr]  # there is one

    def _reporter(self, call_id: int) -> Callable[[str, float | None, float | None], None]:
        def report(message: str, current: float | None, total: float | None) -> None:
            if len(self._reports) >= _MAX_REPORTS:
                # The link is slower than the work: a later report supersedes this one.
                return
            progress = {"t": "progress", "id": call_id, "message": message, "current": current, "total": total}
            sending = asyncio.ensure_future(self._quietly(packed(progress)))
            self._reports.add(sending)
            sending.add_done_callback(self._reports.discard)

        return report

    async def _observe(self, call_id: int, work: Work, *, is_large: bool) -> None:
        """Answer a call that changes nothing: it ends with its link, and may simply be sent again."""
        async with self._replying(call_id), self._large if is_large else nullcontext():
            await self._send_reply(call_id, await work())

    async def _answer(self, call_id: int, act: asyncio.Task[Reply]) -> None:
        async with self._replying(call_id, act):
            reply = await asyncio.shield(act)
            await self._send_reply(call_id, reply)
            if sum(len(item.data) for item in reply.attachments) > _MAX_KEPT_BYTES:
                # An act is remembered for ten minutes: pictures with it would add up.
                reply.attachments.clear()

    @asynccontextmanager
    async def _replying(self, call_id: int, act: asyncio.Task[Reply] | None = None) -> AsyncIterator[None]:
        """Send an error reply for what fails inside. An act is reported as cancelled only if it was, not its waiter."""
        try:
            yield
        except asyncio.CancelledError:
            if act is None or act.cancelled():
                await self._quietly(packed(_cancelled(call_id)))
            raise
        except LinkError as error:
            await self._quietly(packed(_refused(call_id, error)))
        except (OSError, ConnectionClosed):
            # The link is lost; a resumed one requests the answer by the key.
            pass
        finally:
            self._running.pop(call_id, None)
            self._credits.pop(call_id, None)

    async def _send_reply(self, call_id: int, reply: Reply) -> None:
        blobs = [item.data for item in reply.attachments]
        if sum(map(len, blobs)) > MAX_BLOBS:
            refused = {"t": "error", "id": call_id, "code": "limit_exceeded", "message": "The answer is too large."}
            await self._send(packed(refused))
            return
        for piece in pieces_of(call_id, blobs):
            await self._send(piece)
        fields = [{"mime": item.mime, "size": len(item.data)} for item in reply.attachments]
        await self._send(
            packed({"t": "reply", "id": call_id, "envelope": plain(reply.envelope), "attachments": fields})
        )

    async def _quietly(self, raw: bytes) -> None:
        try:
            await self._send(raw)
        except (OSError, ConnectionClosed):
            pass


@dataclass(frozen=True, slots=True)
class PeerDispatchers:
    """The dispatchers for calls of a peer: operations, facet methods, the byte streams of both, and who is paired."""

    operations: Dispatcher
    facets: Dispatcher
    bulk: Bulk
    table: PeerTable


def _refused(call_id: int, error: LinkError) -> dict[str, Any]:
    fields = {"t": "error", "id": call_id, "code": error.code, "message": error.message}
    return {**fields, "effect": "unverifiable"} if error.details.get("effect") == "unverifiable" else fields


def _cancelled(call_id: int) -> dict[str, Any]:
    return {"t": "error", "id": call_id, "code": "aborted", "message": "The call was cancelled."}
