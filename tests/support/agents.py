"""Real agent programs on scripted models, in a service whose environment names them."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from computer_linker.computer.base import Computer
from computer_linker.providers.processes.prepare import Preparation
from computer_linker.providers.sandbox.sandbox import Sandbox
from support import node
from support.models.scripted import Model
from support.road import Road

_CONFIG = """
model = "mock-model"
model_provider = "scripted"
check_for_update_on_startup = false
[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
"""


@dataclass(frozen=True)
class Program:
    """One agent program, and the environment a service needs to use it."""

    agent: str
    path: Path
    environ: dict[str, str]


@contextmanager
def codex_on(model: Model, config: str = "") -> Iterator[Program]:
    """Codex with a folder of its own. It lies outside the temporary folder, where Codex would not work."""
    home = Path(tempfile.mkdtemp(prefix="codex-home-", dir="/var/tmp"))
    try:
        (home / "config.toml").write_text(_CONFIG.format(port=model.port) + config)
        yield Program("codex", node.needed(node.codex), {"CODEX_HOME": str(home)})
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def claude_on(model: Model) -> Iterator[Program]:
    """Claude Code with a key that only the scripted model knows."""
    address = {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model.port}", "ANTHROPIC_API_KEY": "scripted"}
    address["CLAUDE_CODE_MAX_RETRIES"] = "0"
    yield Program("claude", node.needed(node.claude), address)


def environ_for(program: Program) -> dict[str, str]:
    """A service's environment with the program on its path."""
    path = f"{program.path.parent}:/usr/local/bin:/usr/bin:/bin"
    return {"PATH": path, "HOME": os.environ.get("HOME", "/root"), **program.environ}


@asynccontextmanager
async def road_with(tmp_path: Path, environ: dict[str, str], scopes: list[dict[str, Any]]) -> AsyncIterator[Road]:
    """The road of a service that was started with this environment."""
    async with Road.open(tmp_path, scopes) as road:
        services = road.app.services
        computer, sandbox = services.use(Computer), services.use(Sandbox)
        prepared = Preparation(computer, sandbox, environ, scopes=lambda: services.config.scopes)
        services.provide(Preparation, prepared)
        yield road


async def until_over(road: Road, session_id: str, **parts: Any) -> dict[str, Any]:
    """Read on until the turn is over; gives the last state with all events."""
    events: list[dict[str, Any]] = []
    cursor = 0
    with anyio.fail_after(60):
        while True:
            options = {"cursor": cursor, "waitSeconds": 5}
            state = await road.data("codex.read", session_id, options=options, **parts)
            events += state["events"]
            if state["status"] != "running" and state["cursor"] == cursor:
                return {**state, "events": events}
            cursor = state["cursor"]
