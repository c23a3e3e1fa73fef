"""Which boundary holds around an agent, and what is refused where it would not hold."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from computer_linker.computer.base import Computer
from computer_linker.providers.processes.prepare import Preparation
from computer_linker.providers.sandbox.boundary import Kind
from computer_linker.providers.sandbox.sandbox import Sandbox
from support.agents import codex_on, environ_for, road_with
from support.agents_road import agent_on, agent_road, command
from support.models.responses import responses_model, shell
from support.models.scripted import Model, Step
from support.road import FOLDER_CAPABILITIES, Road, folder_scope

pytestmark = pytest.mark.anyio

SERVER = r"""
import json, sys
open(sys.argv[1], "w").write("started")
for line in sys.stdin:
    asked = json.loads(line)
    answers = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}},
        "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]},
        "tools/call": {"content": [{"type": "text", "text": "echoed"}]},
    }
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answers.get(asked["method"], {})}), flush=True)
"""


@asynccontextmanager
async def bounded_road(
    tmp_path: Path, kinds: tuple[Kind, ...], *steps: Step, **policy: Any
) -> AsyncIterator[tuple[Road, Model]]:
    """A machine that has only these boundaries."""
    (tmp_path / "root").mkdir()
    with agent_on("codex", *steps) as (program, model):
        scope = folder_scope(tmp_path / "root", **{"allowedCommands": ["codex *"], **policy})
        async with Road.open(tmp_path, [scope]) as road:
            services = road.app.services
            sandbox = Sandbox(services.use(Computer), services.home, kinds)
            services.provide(Sandbox, sandbox)
            services.provide(Preparation, Preparation(services.use(Computer), sandbox, environ_for(program)))
            yield road, model


async def test_without_ours_codex_holds_its_own_and_says_so(tmp_path: Path) -> None:
    outside = tmp_path / "made-outside"
    line = f"echo x > {outside}; echo x > ok.txt"
    async with bounded_road(tmp_path, (), shell(line), {"say": "tried"}) as (road, _):
        envelope = await road.call("codex.run", ".", input={"prompt": "go"})
    assert envelope["data"]["boundary"] == "codex workspace-write: writes, network of its commands"
    assert any("No kernel boundary" in warning for warning in envelope["warnings"])
    assert (tmp_path / "root" / "ok.txt").exists() and not outside.exists()


@pytest.mark.parametrize(
    ("kinds", "policy"),
    [(("landlock",), {}), ((), {"sandbox": "required"}), ((), {"allowedCommands": None})],
    ids=["landlock alone", "required and none", "no list and none"],
)
async def test_where_no_boundary_would_hold_codex_does_not_start(
    tmp_path: Path, kinds: Any, policy: dict[str, Any]
) -> None:
    async with bounded_road(tmp_path, kinds, {"say": "ran"}, **policy) as (road, model):
        assert await road.code("codex.run", ".", input={"prompt": "go"}) in (
            "provider_unavailable",
            "permission_denied",
        )
        assert model.requests == []


@pytest.mark.parametrize("network", [False, True])
async def test_tool_servers_of_the_owner_run_only_where_the_network_is_allowed(tmp_path: Path, network: bool) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "server.py").write_text(SERVER)
    mark = root / "started.txt"
    config = (
        f'[mcp_servers.tiny]\ncommand = "/usr/bin/python3"\nargs = ["{root}/server.py", "{mark}"]\nrequired = true\n'
    )
    steps = ({"call": "echo", "namespace": "mcp__tiny", "args": {}}, {"say": "called"})
    with responses_model(*steps) as model, codex_on(model, config) as codex:
        scopes = [folder_scope(root, allowedCommands=["codex *"], network=network)]
        async with road_with(tmp_path, environ_for(codex), scopes) as road:
            data = await road.data("codex.run", ".", input={"prompt": "go"})
            state = await road.data("codex.read", data["sessionId"])
    calls = [(each["server"], each["tool"], each["status"]) for each in state["events"] if each["type"] == "tool_call"]
    assert mark.exists() is network
    assert (("tiny", "echo", "completed") in calls) is network


async def test_a_link_out_of_the_scope_or_into_its_settings_is_no_working_folder(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / ".git").mkdir(parents=True)
    outside.mkdir()
    (root / "out").symlink_to(outside)
    (root / "settings").symlink_to(".git")
    async with agent_road(tmp_path, "codex", {"say": "ran"}) as (road, model):
        assert await road.code("codex.run", "out", input={"prompt": "go"}) == "path_out_of_scope"
        assert await road.code("codex.run", "settings", input={"prompt": "go"}) == "permission_denied"
        assert await road.code("codex.run", ".git", input={"prompt": "go"}) == "permission_denied"
        assert model.requests == []


async def test_claude_runs_no_commands_where_the_scope_has_no_network(tmp_path: Path) -> None:
    write = {"call": "Write", "args": {"file_path": str(tmp_path / "root" / "w.txt"), "content": "w\n"}}
    steps = (command("claude", "echo x > made.txt"), write, {"say": "tried"})
    async with agent_road(tmp_path, "claude", *steps, network=False) as (road, model):
        envelope = await road.call("codex.run", ".", input={"prompt": "go", "agent": "claude"})
    assert [each["path"] for each in envelope["data"]["diffSummary"]["files"]] == ["w.txt"]
    assert any("without commands" in warning for warning in envelope["warnings"])
    offered = {tool["name"] for tool in model.requests[0]["tools"]}
    assert "Write" in offered and not offered & {"Bash", "WebFetch", "WebSearch", "Task", "Monitor"}


async def test_claude_reads_no_settings_of_the_folder_and_stays_inside(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / ".claude").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret.txt").write_text("CANARY")
    hook = '{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch HOOKED"}]}]}}'
    (root / ".claude" / "settings.json").write_text(hook)
    (root / ".mcp.json").write_text('{"mcpServers": {"evil": {"command": "touch", "args": ["SERVED"]}}}')
    # In a script, because Claude Code itself refuses some of these when it can read them in the command.
    tries = [
        "cat {0}/secret.txt",
        "echo x > {0}/made",
        "echo x > .claude/settings.json",
        "echo x > .mcp.json",
        "echo x > ok.txt",
    ]
    (root / "try.sh").write_text("\n".join(tries).format(outside))
    async with agent_road(tmp_path, "claude", command("claude", "sh try.sh"), {"say": "tried"}) as (road, model):
        data = await road.data("codex.run", ".", input={"prompt": "go", "agent": "claude"})
    assert data["finalMessage"] == "tried"
    assert "CANARY" not in model.said_to()
    assert sorted(path.name for path in root.iterdir()) == [".claude", ".mcp.json", "ok.txt", "try.sh"]
    assert (root / ".claude" / "settings.json").read_text() == hook
    assert list(outside.iterdir()) == [outside / "secret.txt"]


async def test_claude_is_read_only_without_fs_write(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    write = {"call": "Write", "args": {"file_path": str(root / "w.txt"), "content": "w\n"}}
    with agent_on("claude", command("claude", "echo x > made.txt"), write, {"say": "tried"}) as (program, _):
        scope = folder_scope(root, allowedCommands=["claude *"], network=True)
        scope["capabilities"] = [each for each in FOLDER_CAPABILITIES if each != "fs:write"]
        async with road_with(tmp_path, environ_for(program), [scope]) as road:
            data = await road.data("codex.run", ".", input={"prompt": "go", "agent": "claude"})
    assert (data["sandbox"], data["finalMessage"], list(root.iterdir())) == ("read-only", "tried", [])


async def test_claude_without_a_login_is_told_so(tmp_path: Path) -> None:
    async with agent_road(tmp_path, "claude", {"http": 401, "message": "invalid x-api-key"}) as (road, _):
        error = (await road.call("codex.run", ".", input={"prompt": "go", "agent": "claude"}))["error"]
    assert (error["code"], error["details"]["reason"]) == ("provider_unavailable", "login_required"), error
    assert "setup-token" in error["details"]["remedy"]


async def test_what_claude_runs_does_not_inherit_the_api_key(tmp_path: Path) -> None:
    look = "env > env.txt"
    key = "scripted-key-4f7a"
    root = tmp_path / "root"
    root.mkdir()
    (root / "look.sh").write_text(look)
    with agent_on("claude", command("claude", "sh look.sh"), {"say": "looked"}) as (program, _):
        scopes = [folder_scope(root, allowedCommands=["claude *"], network=True)]
        environ = environ_for(program) | {"ANTHROPIC_API_KEY": key}
        async with road_with(tmp_path, environ, scopes) as road:
            data = await road.data("codex.run", ".", input={"prompt": "go", "agent": "claude"})
    assert data["finalMessage"] == "looked"
    assert "PATH=" in (root / "env.txt").read_text() and key not in (root / "env.txt").read_text()
