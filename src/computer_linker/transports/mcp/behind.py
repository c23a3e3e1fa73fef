"""The SDK's server behind one connection's lean lane, started when a message comes that the lane does not answer."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import anyio

from computer_linker.model.principal import Principal
from computer_linker.transports.mcp.tools import Tools

log = logging.getLogger(__name__)

_REPLAYED = "computer-linker-replayed-handshake"


def load_sdk() -> None:
    """Import the SDK's server."""
    import mcp.server.lowlevel
    import mcp.server.streamable_http_manager  # noqa: F401


class SdkBehind:
    """Feeds messages to the SDK's server and passes on what it says."""

    def __init__(self, tools: Tools, principal: Callable[[], Principal], send: Callable[[bytes], None]) -> None:
        self._send = send
        self._to_sdk, from_wire = anyio.create_memory_object_stream[Any](1000)
        self._task = asyncio.get_running_loop().create_task(self._serve(tools, principal, from_wire))

    def replay(self, handshake: dict[str, Any]) -> None:
        """Bring the SDK to where the lane already is; its own answer to the handshake is dropped."""
        self.feed({**handshake, "id": _REPLAYED})
        self.feed({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def feed(self, message: dict[str, Any]) -> None:
        """Give one message to the SDK. A client that sends more than a thousand unread ones loses the rest."""
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

        from computer_linker.transports.mcp.sdk import build_server

        server = build_server(tools, lambda ctx: principal())
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
