"""Serving a paired machine: its calls go down our own road, whose policy, confirmation and audit have the last word."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic_core import to_json

from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.errors import InvalidRequest
from computer_linker.model.envelope import Reply
from computer_linker.model.ids import new_handle
from computer_linker.model.principal import Principal
from computer_linker.transports.peer.frames import packed
from computer_linker.transports.peer.table import Peer

Send = Callable[[bytes], Awaitable[None]]
_KEEP_S = 600.0
_MAX_KEPT = 1000
_MAX_UNDER_WAY = 64


class Acts:
    """Calls of one peer by their idempotency key: a call that comes again after a dropped link is not done again."""

    def __init__(self) -> None:
        self._acts: dict[str, tuple[float, asyncio.Task[Reply]]] = {}

    def run(self, key: str, work: Callable[[], Awaitable[Reply]]) -> asyncio.Task[Reply]:
        """The act of this key: the one under way or done, or a new one."""
        now = time.monotonic()
        for old in [k for k, (at, task) in self._acts.items() if task.done() and at < now - _KEEP_S]:
            del self._acts[old]
        known = self._acts.get(key)
        if known is not None:
            return known[1]
        if len(self._acts) >= _MAX_KEPT:
            raise InvalidRequest("Too many calls are remembered for this peer; wait a little.")
        task = asyncio.ensure_future(_as_coroutine(work))
        self._acts[key] = (now, task)
        return task


class HostSession:
    """One link from a paired machine."""

    def __init__(self, dispatcher: Dispatcher, peer: Peer, acts: Acts, send: Send) -> None:
        self._dispatcher = dispatcher
        self._peer = peer
        self._acts = acts
        self._send = send
        self._connection = new_handle("link")
        self._telling: set[asyncio.Task[None]] = set()
        self._running: dict[int, tuple[asyncio.Task[None], asyncio.Task[Reply]]] = {}

    async def take(self, frame: dict[str, Any]) -> None:
        """Handle one frame of the peer."""
        match frame["t"]:
            case "call":
                self._call(frame)
            case "cancel":
                running = self._running.get(frame.get("id", -1))
                if running is not None:
                    running[1].cancel()
            case _:
                raise InvalidRequest("That frame is not for a host.")

    async def close(self) -> None:
        """The link is gone. Acts under way go on to their end, so that a resumed link finds out what became of them."""
        for answering, _ in list(self._running.values()):
            answering.cancel()

    def _call(self, frame: dict[str, Any]) -> None:
        call_id, key, call = frame.get("id"), frame.get("key"), frame.get("call")
        if type(call_id) is not int or type(key) is not str or not 8 <= len(key) <= 64 or type(call) is not dict:
            raise InvalidRequest("A call frame has id, key and call.")
        if call_id in self._running or len(self._running) >= _MAX_UNDER_WAY:
            raise InvalidRequest("Too many calls are under way on this link.")

        def report(message: str, current: float | None, total: float | None) -> None:
            progress = {"t": "progress", "id": call_id, "message": message, "current": current, "total": total}
            telling = asyncio.ensure_future(self._quietly(packed(progress)))
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)

        act = self._acts.run(key, lambda: self._dispatcher.call_wire(call, self._principal(), report))
        self._running[call_id] = (asyncio.ensure_future(self._answer(call_id, act)), act)

    async def _answer(self, call_id: int, act: asyncio.Task[Reply]) -> None:
        try:
            reply = await asyncio.shield(act)
            attached = [{"mime": item.mime, "data": item.data} for item in reply.attachments]
            envelope = json.loads(to_json(reply.envelope, by_alias=True))
            await self._send(packed({"t": "reply", "id": call_id, "envelope": envelope, "attachments": attached}))
        except asyncio.CancelledError:
            if act.cancelled():
                await self._quietly(
                    packed({"t": "error", "id": call_id, "code": "aborted", "message": "The call was cancelled."})
                )
            raise
        finally:
            self._running.pop(call_id, None)

    async def _quietly(self, raw: bytes) -> None:
        try:
            await self._send(raw)
        except OSError:
            pass

    def _principal(self) -> Principal:
        peer = self._peer
        return Principal(
            f"peer:{peer.machine_id}", "peer", session=self._connection, connection=self._connection,
            client=peer.name, grants=frozenset(peer.grants),
        )  # fmt: skip


async def _as_coroutine(work: Callable[[], Awaitable[Reply]]) -> Reply:
    return await work()
