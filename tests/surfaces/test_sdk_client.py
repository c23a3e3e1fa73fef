"""The MCP SDK's own client, in both eras, over stdio, the private socket and HTTP."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from computer_linker import home as places
from support.service import TOKEN, Service, serving

pytestmark = pytest.mark.anyio
MODES = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("sdk"), token=TOKEN) as running:
        (running.root / "notes.txt").write_text("hello")
        yield running


@asynccontextmanager
async def socket_transport(home: str) -> AsyncIterator[Any]:
    """The SDK's streams on the service's private socket."""
    link = socket.socket(fileno=places.enter(home, places.GREETING_STREAM).detach())
    reader, writer = await asyncio.open_unix_connection(sock=link, limit=1 << 24)
    to_client, read_stream = anyio.create_memory_object_stream[Any](16)
    write_stream, from_client = anyio.create_memory_object_stream[Any](16)

    async def pump_in() -> None:
        async with to_client:
            while line := await reader.readline():
                await to_client.send(SessionMessage(jsonrpc_message_adapter.validate_json(line)))

    async def pump_out() -> None:
        async with from_client:
            async for item in from_client:
                writer.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    async with anyio.create_task_group() as group:
        group.start_soon(pump_in)
        group.start_soon(pump_out)
        yield read_stream, write_stream
        group.cancel_scope.cancel()
    writer.close()
    read_stream.close()
    write_stream.close()


@asynccontextmanager
async def connected(way: str, mode: str, service: Service) -> AsyncIterator[Client]:
    """A client that has settled on a protocol revision."""
    if way == "http":
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"}) as http,
            Client(streamable_http_client(service.url, http_client=http), mode=mode) as client,
        ):
            yield client
        return
    shim = StdioServerParameters(
        command=sys.executable, args=["-m", "computer_linker", "stdio"], env={"COMPUTER_LINKER_HOME": str(service.home)}
    )
    server = shim if way == "stdio" else socket_transport(str(service.home))
    async with Client(server, mode=mode) as client:
        yield client


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", ["stdio", "socket", "http"])
async def test_the_sdk_client_lists_calls_pings_and_is_refused(way: str, mode: str, service: Service) -> None:
    async with connected(way, mode, service) as client:
        assert client.session.protocol_version == MODES[mode]
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["get_computer_info", "computer_operation", "get_operation_history"]
        assert all(tool.annotations and tool.annotations.open_world_hint is False for tool in tools)

        read = await client.call_tool("computer_operation", {"scope": "app", "op": "file.read", "target": "notes.txt"})
        assert not read.is_error
        assert read.structured_content == json.loads(read.content[0].text)  # type: ignore[union-attr]
        assert read.structured_content["data"]["content"] == "hello"

        refused = await client.call_tool("computer_operation", {"scope": "app", "op": "file.read", "target": "../x"})
        assert refused.is_error
        assert refused.structured_content["error"]["code"] == "path_out_of_scope"

        info = await client.call_tool("get_computer_info", {"include": ["identity"]})
        assert info.structured_content["machineName"] == "test"

        with pytest.raises(MCPError):
            await client.call_tool("no_such_tool", {})
        assert (await client.list_resources()).resources
        with pytest.raises(MCPError):
            await client.read_resource("linker://app/file/../x")
        if mode == "legacy":
            with pytest.warns(MCPDeprecationWarning):
                await client.send_ping()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("way", ["stdio", "socket", "http"])
async def test_sixty_calls_at_once_each_get_their_own_answer(way: str, mode: str, service: Service) -> None:
    for number in range(60):
        (service.root / f"{number}.txt").write_text(str(number))
    answers: dict[int, str] = {}

    async with connected(way, mode, service) as client:

        async def read(number: int) -> None:
            call = {"scope": "app", "op": "file.read", "target": f"{number}.txt"}
            result = await client.call_tool("computer_operation", call)
            answers[number] = result.structured_content["data"]["content"]

        async with anyio.create_task_group() as group:
            for number in range(60):
                group.start_soon(read, number)
    assert answers == {number: str(number) for number in range(60)}
