"""The SDK's low-level server behind the lean lane. Imported on first need: it is most of a second and 50 MB."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import anyio

from computer_linker import __version__
from computer_linker.model.principal import Principal
from computer_linker.policy.confirm import Asked
from computer_linker.providers.approvals import Answer, Approver
from computer_linker.transports.mcp.dialog import answer_of, ask_by_result, can_ask, question
from computer_linker.transports.mcp.lane import HANDSHAKE_VERSIONS, MODERN_VERSION, SERVER_INFO, Lane, Talk, ToolCall
from computer_linker.transports.mcp.progress import courier
from computer_linker.transports.mcp.tools import INSTRUCTIONS, Tools, check_arguments

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

FindPrincipal = Callable[[Any], Principal]
"""Who is behind a request, from the SDK's request context."""


def build_server(tools: Tools, principal_of: FindPrincipal) -> "Server[Any]":
    """A low-level server whose only capability is our tools, run by the same lane as everywhere."""
    import mcp_types as types
    from mcp.server.lowlevel import Server

    lane = Lane(tools)

    async def list_tools(ctx: Any, params: Any) -> Any:
        return types.ListToolsResult.model_validate({"tools": tools.listed})

    async def call_tool(ctx: Any, params: Any) -> Any:
        if not tools.has(params.name):
            from mcp.shared.exceptions import MCPError

            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:80]}")
        call = ToolCall(
            params.name,
            check_arguments(params.arguments),
            state=params.request_state,
            responses=_plain(params.input_responses),
        )
        talk = Talk("modern" if ctx.protocol_version == MODERN_VERSION else "handshake")
        raw: bytes | None = None
        with anyio.CancelScope() as work, _until_ended(ctx, work.cancel):
            async with courier(ctx.session.report_progress) as report:
                raw = await lane.run(call, talk, principal_of(ctx), report, _dialog_of(ctx))
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
    )
    # No spans are exported, so none are made.
    server.middleware.clear()
    return server


def _until_ended(ctx: Any, end: Callable[[], None]) -> AbstractContextManager[None]:
    """Have `end` called when the caller's own session is ended: the SDK runs a call in a task that outlives its request."""
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

    async def ask(asked: Asked) -> Answer | None:
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
