"""Clients on Windows: the MCP SDK over stdio, this package's own SDK in every way it has, and the bridge over its pipe."""

import json
from typing import Any

import pytest
from mcp import Client as McpClient
from mcp import StdioServerParameters

from windows import wine
from windows.machine import Client, Machine

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(wine.program() is None, reason=wine.MISSING)]
_SDK = """
import json
from computer_linker.client import Client
from computer_linker.errors import PathOutOfScope
from computer_linker.operations.file.read import FileText

def answers(opened):
    with opened as linker:
        text = linker.scope("work").call("file.read", "sdk.txt").into(FileText)
        try:
            linker.call("work", "file.read", "../elsewhere.txt")
        except PathOutOfScope as refused:
            return [text.content, refused.code, linker.info("platform")["platform"]["os"]]

print(json.dumps({"socket": answers(Client.over_socket()), "stdio": answers(Client.over_stdio())}))
"""
_BRIDGE = """
import json, os, sys
from computer_linker import home

def asked(method, params):
    with home.connect(home.state_home(), home.BRIDGE_NAME) as link:
        link.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\\n")
        line = b""
        while not line.endswith(b"\\n"):
            piece = link.recv(65536)
            if not piece:
                break
            line += piece
        return json.loads(line)

meta = {"schemaVersion": 1, "requestId": "5f0c6d3e-6d5c-4a58-9f0b-2f6b1a0f7c11", "workspacePath": sys.argv[1]}
print(json.dumps([os.getpid(), asked("desktop.health", {"meta": meta}), asked("desktop.health", {})]))
"""


def _answers(machine: Machine, code: str, *arguments: str) -> Any:
    done = machine.run("-c", code, *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


async def test_the_mcp_sdk_lists_tools_calls_and_is_refused_over_stdio(machine: Machine, client: Client) -> None:
    program = wine.program()
    assert program is not None
    (machine.work / "sdk.txt").write_bytes(b"for the SDK")
    # The SDK's own ends are sockets, and Windows Python under wine needs real pipes.
    piped = 'cat | "$0" "$@" 2>/dev/null | cat'
    words = ["-c", piped, program, str(wine.python()), "-m", "computer_linker", "stdio"]
    server = StdioServerParameters(command="sh", args=words, env=machine.environment)
    async with McpClient(server, mode="legacy") as opened:
        names = [tool.name for tool in (await opened.list_tools()).tools]
        assert names == ["get_computer_info", "computer_operation", "get_operation_history"]
        read = await opened.call_tool("computer_operation", {"scope": "work", "op": "file.read", "target": "sdk.txt"})
        assert read.structured_content is not None and read.structured_content["data"]["content"] == "for the SDK"
        out = {"scope": "work", "op": "file.read", "target": "C:\\windows\\win.ini"}
        refused = await opened.call_tool("computer_operation", out)
        assert refused.structured_content is not None
        assert refused.is_error and refused.structured_content["error"]["code"] == "path_out_of_scope"


def test_our_own_sdk_works_in_windows_python(machine: Machine, client: Client) -> None:
    """The mission's point 001-116: the SDK runs where Python runs."""
    (machine.work / "sdk.txt").write_bytes(b"for the SDK")
    expected = ["for the SDK", "path_out_of_scope", "windows"]
    assert _answers(machine, _SDK) == {"socket": expected, "stdio": expected}


def test_the_bridge_answers_this_user_over_its_pipe(machine: Machine, client: Client) -> None:
    """The mission's point 003-001: a bridge on Windows."""
    pid, health, refused = _answers(machine, _BRIDGE, f"{machine.there}\\work")
    assert health["result"]["bridge"] == {"schemaVersion": 1}
    assert health["result"]["system"] == "windows" and health["result"]["peer"]["pid"] == pid
    assert refused["error"]["code"] == "DESKTOP_INVALID_REQUEST"


def test_a_command_gets_no_answer_from_the_bridge(machine: Machine, client: Client) -> None:
    home = f"{machine.there}\\state"
    code = f"import os, sys; os.environ['COMPUTER_LINKER_HOME'] = {home!r}; sys.argv[1:] = ['C:/']\n{_BRIDGE}"
    told = client.call("command.run", ".", input={"command": ["python", "-c", code]})["data"]
    assert '"result"' not in told["stdout"], told
    assert "DESKTOP_PERMISSION_MISSING" in told["stdout"], told
