"""The SDK's low-level server behind the fast path. The SDK is imported on first use: most of a second and 50 MB."""

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio

from computer_linker import __version__
from computer_linker.approvals.approvals import Approver
from computer_linker.approvals.request import Answer, ApprovalRequest
from computer_linker.model.principal import Principal
from computer_linker.transports.mcp.dialog import answer_of, ask_by_result, can_ask, question
from computer_linker.transports.mcp.fast_path import SERVER_INFO, FastPath, Negotiated, ToolCall
from computer_linker.transports.mcp.handshake import HANDSHAKE_VERSIONS, MODERN_VERSION
from computer_linker.transports.mcp.offers import OfferRefused
from computer_linker.transports.mcp.progress import courier
from computer_linker.transports.mcp.tools import INSTRUCTIONS, Tools, check_arguments

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from computer_linker.transports.mcp.handshake import Era

log = logging.getLogger(__name__)

_REPLAYED = "computer-linker-replayed-handshake"

FindPrincipal = Callable[[Any], Principal]
"""Returns the principal of a request from the SDK's request context."""
FindNegotiated = Callable[[Any], Negotiated]
"""Returns what is known of the client of a request, from the same context."""


def load_sdk() -> None:
    """Import the SDK's server."""
    import mcp.server.lowlevel
    import mcp.server.streamable_http_manager  # noqa: F401


class SdkSession:
    """The SDK's server for one line connection: takes the messages that the fast path does not answer."""

    def __init__(
        self,
        tools: Tools,
        principal: Callable[[], Principal],
        negotiated: Callable[[], Negotiated],
        send: Callable[[bytes], None],
    ) -> None:
        self._send = send
        self._negotiated = negotiated
        self._to_sdk, from_wire = anyio.create_memory_object_stream[Any](1000)
        self._task = asyncio.get_running_loop().create_task(self._serve(tools, principal, from_wire))

    def replay(self, handshake: dict[str, Any]) -> None:
        """Replay the handshake that the fast path answered; the SDK's own answer to the handshake is dropped."""
        self.feed({**handshake, "id": _REPLAYED})
        self.feed({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def feed(self, message: dict[str, Any]) -> None:
        """Queue one message for the SDK. A client with more than a thousand unprocessed ones loses the rest."""
        try:
            self._to_sdk.send_nowait(message)
        except (anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            log.warning("a message for the SDK was dropped")

    async def aclose(self) -> None:
        """End the SDK's server."""
        self._to_sdk.close()
        self._task.cancel()
        await asyncio.wait([self._task], timeout=5)

    async def _serve(self, tools: Tools, principal: Callable[[], Principal], from_wire: Any) -> None:
        # In a thread: the import takes most of a second, and other clients are being served.
        await anyio.to_thread.run_sync(load_sdk)
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter
        from pydantic import ValidationError

        server = build_server(tools, lambda ctx: principal(), lambda ctx: self._negotiated())
        into, read_stream = anyio.create_memory_object_stream[Any](16)
        write_stream, out_of = anyio.create_memory_object_stream[Any](16)

        async def pump_in() -> None:
            async with into, from_wire:
                async for message in from_wire:
                    try:
                        await into.send(SessionMessage(jsonrpc_message_adapter.validate_python(message)))
                    except ValidationError:
                        log.warning("a message that is no JSON-RPC was dropped")

        async def pump_out() -> None:
            async with out_of:
                async for item in out_of:
                    if getattr(item.message, "id", None) != _REPLAYED:
                        self._send(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

        async with anyio.create_task_group() as group:
            group.start_soon(pump_in)
            group.start_soon(pump_out)
            await server.run(read_stream, write_stream, server.create_initialization_options())
            group.cancel_scope.cancel()


def negotiated_over_http(ctx: Any) -> Negotiated:
    """What is known of the client of an HTTP request; the endpoint notes it in the request's scope."""
    known: Negotiated | None = ctx.request.scope.get("linker.negotiated")
    return known if known is not None else Negotiated()


def build_server(
    tools: Tools, principal_of: FindPrincipal, negotiated_of: FindNegotiated = negotiated_over_http
) -> "Server[Any]":
    """A low-level server of our tools, resources and prompts, run by the same fast path as everywhere."""
    import mcp_types as types
    from mcp.server.lowlevel import Server

    fast_path = FastPath(tools)

    async def list_tools(ctx: Any, params: Any) -> Any:
        if getattr(params, "cursor", None) is not None:
            from mcp.shared.exceptions import MCPError

            raise MCPError(types.INVALID_PARAMS, "There is no page at this cursor: the tools are listed at once.")
        listed = fast_path.listed(negotiated_of(ctx))
        return types.ListToolsResult.model_validate({"tools": json.loads(listed)})

    async def call_tool(ctx: Any, params: Any) -> Any:
        known = negotiated_of(ctx)
        if not fast_path.tools_for(known).has(params.name):
            from mcp.shared.exceptions import MCPError

            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:80]}")
        call = ToolCall(
            params.name,
            check_arguments(params.arguments),
            state=params.request_state,
            responses=_plain(params.input_responses),
        )
        era: Era = "modern" if ctx.protocol_version == MODERN_VERSION else "handshake"
        negotiated = replace(known, era=era)
        raw: bytes | None = None
        with anyio.CancelScope() as work, _until_ended(ctx, work.cancel):
            async with courier(ctx.session.report_progress) as report:
                raw = await fast_path.run(call, negotiated, principal_of(ctx), report, _dialog_of(ctx))
        if raw is None:
            from mcp.shared.exceptions import MCPError

            raise MCPError(types.INVALID_REQUEST, "The session was ended.")
        result = json.loads(raw)
        if result.get("resultType") == "input_required":
            return types.InputRequiredResult.model_validate(result)
        return types.CallToolResult.model_validate(result)

    server: Server[Any] = Server(
        SERVER_INFO["name"],
        version=__version__,
        title=SERVER_INFO["title"],
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        **_offer_handlers(fast_path, principal_of),
    )
    # No spans are exported, so none are made.
    server.middleware.clear()
    return server


def _offer_handlers(fast_path: FastPath, principal_of: FindPrincipal) -> dict[str, Any]:
    """The SDK's handlers for resources, prompts and completion."""
    import mcp_types as types

    def offer(method: str, kind: Any) -> Any:
        """A handler of the SDK that the same code answers as on a line connection."""

        async def handle(ctx: Any, params: Any) -> Any:
            is_modern = ctx.protocol_version == MODERN_VERSION
            try:
                result = await fast_path.offers.answer(method, _plain(params), principal_of(ctx), is_modern=is_modern)
            except OfferRefused as refused:
                from mcp.shared.exceptions import MCPError

                raise MCPError(refused.code, refused.message) from None
            return kind.model_validate(result)

        return handle

    return {
        "on_list_resources": offer("resources/list", types.ListResourcesResult),
        "on_list_resource_templates": offer("resources/templates/list", types.ListResourceTemplatesResult),
        "on_read_resource": offer("resources/read", types.ReadResourceResult),
        "on_list_prompts": offer("prompts/list", types.ListPromptsResult),
        "on_get_prompt": offer("prompts/get", types.GetPromptResult),
        "on_completion": offer("completion/complete", types.CompleteResult),
    }


def _until_ended(ctx: Any, end: Callable[[], None]) -> AbstractContextManager[None]:
    """Call `end` when the caller's own session ends: the SDK runs a call in a task that outlives its request."""
    scope: dict[str, Any] = getattr(getattr(ctx, "request", None), "scope", None) or {}
    during = scope.get("linker.during")
    return nullcontext() if during is None else during(end)


def _dialog_of(ctx: Any) -> Approver | None:
    """The client's own dialog, when it has one."""
    capabilities = ctx.session.client_capabilities
    if not can_ask(_plain(capabilities)):
        return None
    if ctx.protocol_version not in HANDSHAKE_VERSIONS:
        return ask_by_result

    async def ask(asked: ApprovalRequest) -> Answer | None:
        form = question(asked)
        result = await ctx.session.elicit_form(
            form["message"], form["requestedSchema"], related_request_id=ctx.request_id
        )
        return answer_of(_plain(result))

    return ask


def _plain(value: Any) -> Any:
    """An SDK model, or a dict of them, as plain JSON values."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    dump = getattr(value, "model_dump", None)
    return dump(by_alias=True, mode="json", exclude_none=True) if dump is not None else value
