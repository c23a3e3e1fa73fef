"""The bridge's JSON-RPC server: one message a line, each request an execution of its own."""

import asyncio
import logging
import os
from contextlib import suppress
from typing import Any

import anyio
from anyio import to_thread
from pydantic_core import to_json

from computer_linker.computer.base import Computer
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.dispatch.live_sessions import LiveSessions
from computer_linker.errors import InvalidRequest, LinkError, PermissionDenied
from computer_linker.model.ids import new_ulid
from computer_linker.model.json_text import read_json
from computer_linker.model.request_id import id_of, request_id_of
from computer_linker.registry.validation import explain_validation
from computer_linker.services import Services
from computer_linker.transports.bridge import MAX_LINE
from computer_linker.transports.bridge.execution import Execution, start_evidence
from computer_linker.transports.bridge.listener import Peer
from computer_linker.transports.bridge.messages import (
    ACTS,
    BODIES,
    Abort,
    BridgeFault,
    Click,
    Confirm,
    Find,
    Hotkey,
    Issue,
    Meta,
    Observe,
    TypeText,
    WaitUntil,
    fault_of,
    fault_of_envelope,
)
from computer_linker.transports.bridge.methods import Methods, open_workspace, workspace_root

log = logging.getLogger(__name__)

_AT_ONCE = 16
_ENDS_S = 5.0
_DENIED = ("DESKTOP_WORKSPACE_FORBIDDEN", "DESKTOP_PERMISSION_MISSING")
_WITHOUT_WORKSPACE = ("desktop.health", "desktop.doctor")


class Bridge:
    """Serves the desktop to local programs that speak the bridge's protocol."""

    def __init__(self, services: Services, dispatcher: Dispatcher, computer: Computer) -> None:
        self._services = services
        self._dispatcher = dispatcher
        self._computer = computer
        self._methods = Methods(services, computer)
        self._running: dict[str, Execution] = {}

    async def serve(self, peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer each line when it is done. The requests of a client that disconnects are cancelled."""
        async with anyio.create_task_group() as requests:
            room = anyio.Semaphore(_AT_ONCE)

            async def one(raw: bytes) -> None:
                async with room:
                    answer = await self._answer(peer, raw)
                with suppress(ConnectionError):
                    writer.write(to_json(answer, by_alias=True) + b"\n")
                    await writer.drain()

            try:
                with self._services.use(LiveSessions).connected(peer.principal, reader.feed_eof):
                    while raw := await reader.readline():
                        if raw.strip():
                            requests.start_soon(one, raw)
            except ValueError:
                writer.write(to_json(_failed(None, _invalid(f"A message has at most {MAX_LINE} bytes."))) + b"\n")
            requests.cancel_scope.cancel()

    async def _answer(self, peer: Peer, raw: bytes) -> dict[str, Any]:
        request_id: Any = None
        method = ""
        try:
            try:
                message = read_json(raw)
            except InvalidRequest:
                request_id = request_id_of(raw)
                raise
            request_id = id_of(message)
            request_id, method, params = _shape(message)
            result = await self._perform(peer, method, params)
        except BridgeFault as fault:
            return await self._refused(peer, method, request_id, fault)
        except LinkError as error:
            return await self._refused(peer, method, request_id, fault_of(error))
        except Exception:
            log.exception("a bridge request failed")
            return _failed(request_id, BridgeFault("DESKTOP_INTERNAL_ERROR", "The request failed inside the service."))
        return {"jsonrpc": "2.0", "id": request_id, "result": result}

    async def _refused(self, peer: Peer, method: str, request_id: Any, fault: BridgeFault) -> dict[str, Any]:
        """The error of a request. One that did not reach the dispatcher is recorded here."""
        if not fault.is_recorded:
            code, message = str(fault.error["code"]), str(fault.error["message"])
            kind = PermissionDenied if code in _DENIED else InvalidRequest
            await self._dispatcher.refuse({"op": method}, peer.principal(), kind(message, rule=code))
        return _failed(request_id, fault)

    async def _perform(self, peer: Peer, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if not peer.is_there:
            raise _invalid("The process that opened this connection has ended.")
        own = {name: value for name, value in params.items() if name not in ("meta", "confirm")}
        with explain_validation("params.meta"):
            meta = Meta.from_wire(params.get("meta"))
        with explain_validation("params.confirm"):
            confirm = Confirm.from_wire(params.get("confirm") or {})
        with explain_validation("params"):
            body = BODIES[method].from_wire(own)
        if "confirm" in params and method not in ACTS:
            raise _invalid(f"{method} takes no confirm.")
        if method in _WITHOUT_WORKSPACE and workspace_root(self._services.config) is None:
            return await self._about(method, peer)
        config, files = self._services.config, self._computer.files
        workspace = await to_thread.run_sync(open_workspace, config, files, meta.workspace_path)
        try:
            if isinstance(body, Abort):
                return await self._abort(peer, body.execution_id)
            if method in _WITHOUT_WORKSPACE:
                return await self._about(method, peer)
            return await self._execute(peer, method, meta, confirm, own, body, workspace)
        finally:
            os.close(workspace)

    async def _about(self, method: str, peer: Peer) -> dict[str, Any]:
        async def about() -> dict[str, Any]:
            return await self._methods.health(peer) if method == "desktop.health" else self._methods.doctor(peer)

        reply = await self._dispatcher.introspect(method, peer.principal(), about)
        if reply.envelope.get("ok") is False:
            raise fault_of_envelope(reply.envelope["error"])
        return reply.envelope

    async def _execute(
        self, peer: Peer, method: str, meta: Meta, confirm: Confirm, own: dict[str, Any], body: Any, workspace: int
    ) -> dict[str, Any]:
        run = Execution(new_ulid(), meta.request_id, peer.principal(), self._dispatcher, meta.workspace_path)
        if any(
            other.request_id == run.request_id and other.principal == run.principal for other in self._running.values()
        ):
            raise _invalid("A request of this requestId is under way.")
        self._running[run.id] = run
        result: dict[str, Any] | None = None
        fault: BridgeFault | None = None
        try:
            if not isinstance(body, Issue):
                run.evidence = await start_evidence(workspace, run.id)
            with run.stop:
                run.stop.deadline = anyio.current_time() + meta.timeout_ms / 1000
                result = await self._run(run, method, meta, confirm, own, body, peer)
            if result is None:
                fault = _stopped(run, meta)
        except BridgeFault as raised:
            fault = raised
        finally:
            del self._running[run.id]
            outcome = {"executionId": run.id, **({"ok": True} if fault is None and result else {"ok": False})}
            await run.finish(outcome | ({"error": fault.error} if fault is not None else {"result": result}))
            run.ended.set()
        if fault is not None:
            fault.error["details"].setdefault("executionId", run.id)
            raise fault
        assert result is not None
        return result

    async def _run(
        self, run: Execution, method: str, meta: Meta, confirm: Confirm, own: dict[str, Any], body: Any, peer: Peer
    ) -> dict[str, Any]:
        match body:
            case Observe():
                return await self._methods.observe(run, body)
            case Find():
                return await self._methods.find(run, body)
            case WaitUntil():
                return await self._methods.wait_until(run, body)
            case Issue():
                return await self._methods.issue(run, body, peer)
            case Click() | TypeText() | Hotkey():
                return await self._methods.act(run, method, meta, confirm, own, body)
            case _:
                raise _invalid("There is no such method.")

    async def _abort(self, peer: Peer, wanted: str) -> dict[str, Any]:
        """Cancel one of this process's own executions, and answer only once it sends nothing more."""
        principal = peer.principal()
        own = [run for run in self._running.values() if run.principal.connection == principal.connection]
        run = next((run for run in own if wanted in (run.id, run.request_id)), None)
        if run is None:
            raise _invalid("No such execution is under way; it may have ended.")

        async def end() -> dict[str, Any]:
            run.is_aborted = True
            run.stop.cancel()
            with anyio.fail_after(_ENDS_S):
                await run.ended.wait()
            return {}

        await self._dispatcher.introspect("desktop.abort", principal, end)
        return {"aborted": True, "executionId": wanted}


def refused(reason: str) -> bytes:
    """The error line for a process that is refused."""
    return to_json(_failed(None, BridgeFault("DESKTOP_PERMISSION_MISSING", reason))) + b"\n"


def _shape(message: Any) -> tuple[Any, str, dict[str, Any]]:
    """The id, method and parameters of a JSON-RPC 2.0 request; anything else is refused."""
    if (
        type(message) is not dict
        or message.get("jsonrpc") != "2.0"
        or not message.keys() <= {"jsonrpc", "id", "method", "params"}
    ):
        raise _invalid('A message is one object {"jsonrpc": "2.0", "id", "method", "params"}.')  # fmt: skip
    request_id, method, params = message.get("id"), message.get("method"), message.get("params")
    if type(request_id) not in (str, int):
        raise _invalid("`id` is a string or a whole number; there are no notifications here.")
    if type(method) is not str or method not in BODIES:
        raise _invalid("There is no such method.", methods=sorted(BODIES))
    if type(params) is not dict:
        raise _invalid("`params` is an object with `meta`.")
    return request_id, method, params


def _failed(request_id: Any, fault: BridgeFault) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": fault.error}


def _invalid(message: str, **details: Any) -> BridgeFault:
    return fault_of(InvalidRequest(message, **details))


def _stopped(run: Execution, meta: Meta) -> BridgeFault:
    fault = BridgeFault(
        "DESKTOP_TIMEOUT", "The request took longer than its timeoutMs.", retryable=True, details={"timeoutMs": meta.timeout_ms}
    )  # fmt: skip
    if run.is_aborted:
        fault = BridgeFault("DESKTOP_ABORTED", "The execution was aborted.")
    # Its calls are, as aborted.
    fault.is_recorded = True
    return fault
