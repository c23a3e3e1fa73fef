"""Both agent programs behind one face, so that the same promises are tested of each."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from support.agents import Program, claude_on, codex_on, environ_for, road_with
from support.models.messages import bash, messages_model
from support.models.responses import responses_model, shell
from support.models.scripted import Model, Step
from support.road import Road, folder_scope

AGENTS = ("codex", "claude")


def command(agent: str, line: str) -> Step:
    """A step in which the agent runs a command."""
    return shell(line) if agent == "codex" else bash(line)


@contextmanager
def agent_on(agent: str, *steps: Step) -> Iterator[tuple[Program, Model]]:
    """The program and the model it talks to."""
    if agent == "codex":
        with responses_model(*steps) as model, codex_on(model) as program:
            yield program, model
    else:
        with messages_model(*steps) as model, claude_on(model) as program:
            yield program, model


def agent_scope(root: Path, agent: str, **policy: Any) -> dict[str, Any]:
    """A scope in which the agent may run; with a network, because Claude Code runs no commands without one."""
    return folder_scope(root, "app", **{"allowedCommands": [f"{agent} *"], "network": True, **policy})


@asynccontextmanager
async def agent_road(tmp_path: Path, agent: str, *steps: Step, **policy: Any) -> AsyncIterator[tuple[Road, Model]]:
    """A road whose agent follows these steps."""
    root = tmp_path / "root"
    root.mkdir(exist_ok=True)
    with agent_on(agent, *steps) as (program, model):
        async with road_with(tmp_path, environ_for(program), [agent_scope(root, agent, **policy)]) as road:
            yield road, model
