"""The SDK's low-level server behind the lean lane. Imported on first need: it is most of a second and 50 MB."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from computer_linker import __version__
from computer_linker.model.principal import Principal
from computer_linker.transports.mcp.content import result_json
from computer_linker.transports.mcp.lane import SERVER_INFO
from computer_linker.transports.mcp.progress import courier
from computer_linker.transports.mcp.tools import INSTRUCTIONS, Tools, check_arguments

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

FindPrincipal = Callable[[Any], Principal]
"""Who is behind a request, from the SDK's request context."""


def build_server(tools: Tools, principal_of: FindPrincipal) -> "Server[Any]":
    """A low-level server whose only capability is our tools."""
    import mcp_types as types
    from mcp.server.lowlevel import Server

    async def list_tools(ctx: Any, params: Any) -> Any:
        return types.ListToolsResult.model_validate({"tools": tools.listed})

    async def call_tool(ctx: Any, params: Any) -> Any:
        if not tools.has(params.name):
            from mcp.shared.exceptions import MCPError

            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:80]}")
        arguments = check_arguments(params.arguments)
        async with courier(ctx.session.report_progress) as report:
            reply = await tools.call(params.name, arguments, principal_of(ctx), report)
        members = result_json(reply, always_structured=params.name in tools.always_structured)
        return types.CallToolResult.model_validate(json.loads(b"{" + members + b"}"))

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
