"""The example agent: by its script, and by models behind both kinds of endpoint, played by a local server."""

import importlib.util
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from computer_linker.computer.simulated import SimulatedComputer
from computer_linker.model.geometry import Rect
from computer_linker.tools import ToolContext, toolbox

pytestmark = pytest.mark.anyio
EXAMPLE = Path(__file__).parents[2] / "examples" / "agent_loop.py"


@pytest.fixture(scope="module")
def agent_loop() -> Any:
    spec = importlib.util.spec_from_file_location("agent_loop", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["agent_loop"] = module
    spec.loader.exec_module(module)
    return module


class Endpoint(ThreadingHTTPServer):
    """A model's endpoint that answers from a list and keeps what it was asked."""

    def __init__(self, answers: list[dict[str, Any]]) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.answers, self.asked = answers, list[dict[str, Any]]()


class _Answering(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        self.server.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        body = json.dumps(self.server.answers[len(self.server.asked) - 1]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture
def endpoint() -> Iterator[Any]:
    servers: list[Endpoint] = []

    def start(answers: list[dict[str, Any]]) -> Endpoint:
        server = Endpoint(answers)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def session() -> tuple[SimulatedComputer, ToolContext]:
    computer = SimulatedComputer()
    computer.world.open("editor", "Notes", Rect(x=100, y=100, width=400, height=300))
    return computer, ToolContext("test", computer)


def test_the_script_runs_as_a_program() -> None:
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert "Grüße aus dem Skript 你好" in done.stdout


async def test_a_model_behind_an_anthropic_endpoint_acts(agent_loop: Any, endpoint: Any) -> None:
    server = endpoint(
        [
            {"content": [{"type": "tool_use", "id": "1", "name": "screenshot", "input": {}}]},
            {
                "content": [
                    {"type": "tool_use", "id": "2", "name": "keyboard", "input": {"action": "type", "text": "hi"}}
                ]
            },
            {"content": [{"type": "text", "text": "Done."}]},
        ]
    )
    computer, ctx = session()
    tools = toolbox()
    brain = agent_loop.AnthropicBrain("Say hi", tools, url=f"http://127.0.0.1:{server.server_port}")
    history = await agent_loop.run_agent(brain, tools, ctx)
    assert ([step.tool for step, _ in history], computer.world.windows[0].text) == (["screenshot", "keyboard"], "hi")
    shown = server.asked[1]["messages"][-1]["content"][0]["content"]
    assert [part["type"] for part in shown] == ["text", "image"]


async def test_a_model_behind_an_openai_endpoint_acts(agent_loop: Any, endpoint: Any) -> None:
    def call(number: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        function = {"name": name, "arguments": json.dumps(arguments)}
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": str(number), "type": "function", "function": function}],
        }
        return {"choices": [{"message": message}]}

    server = endpoint(
        [
            call(1, "screenshot", {}),
            call(2, "mouse", {"action": "click", "x": 150, "y": 150}),
            call(3, "nonsense", {}),
            {"choices": [{"message": {"role": "assistant", "content": "Done."}}]},
        ]
    )
    computer, ctx = session()
    tools = toolbox()
    brain = agent_loop.OpenAIBrain("Click", tools, url=f"http://127.0.0.1:{server.server_port}")
    history = await agent_loop.run_agent(brain, tools, ctx)
    assert [result.ok for _, result in history] == [True, True, False]
    assert [one["event"] for one in computer.world.windows[0].log] == ["click"]
