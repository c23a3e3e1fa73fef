"""A whole agent in one file: look, think, act, until done.

Runs with no model at all, on a simulated desktop, by a script:

    python examples/agent_loop.py

and with a model, on this machine's desktop, asking you before every act:

    python examples/agent_loop.py --model anthropic "Open the editor and write a haiku"
    python examples/agent_loop.py --model openai --url http://127.0.0.1:8000/v1 --name local "..."

The key is read from ANTHROPIC_API_KEY or OPENAI_API_KEY. The loop knows nothing of either: a Brain turns what happened
so far into the next tool calls.
"""

import argparse
import base64
import json
import os
import sys
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio

from computer_linker.computer.local.probe import this_computer
from computer_linker.computer.simulated import SimulatedComputer
from computer_linker.model.geometry import Rect
from computer_linker.tools import PermissionAsked, Tool, ToolContext, ToolResult, toolbox

MAX_STEPS = 30


@dataclass(frozen=True)
class Step:
    """One use of a tool that the brain wants."""

    id: str
    tool: str
    arguments: dict[str, Any]


class Brain(Protocol):
    """Says what to do next; an empty list means done."""

    async def next(self, results: Sequence[tuple[Step, ToolResult]]) -> list[Step]: ...


async def run_agent(brain: Brain, tools: dict[str, Tool[Any]], ctx: ToolContext) -> list[tuple[Step, ToolResult]]:
    """The loop itself: ask the brain, use the tools, tell the brain what came of it."""
    history: list[tuple[Step, ToolResult]] = []
    results: list[tuple[Step, ToolResult]] = []
    for _ in range(MAX_STEPS):
        steps = await brain.next(results)
        if not steps:
            break
        results = []
        for step in steps:
            tool = tools.get(step.tool)
            unknown = ToolResult(step.tool, error=f"There is no tool {step.tool!r}.")
            result = unknown if tool is None else await tool.run(step.arguments, ctx)
            results.append((step, result))
            print(
                f"{step.tool} {json.dumps(step.arguments, ensure_ascii=False)[:100]} -> {result.error or result.title}"
            )
        history.extend(results)
    return history


@dataclass
class ScriptedBrain:
    """No model: a list of steps, one a turn."""

    script: list[tuple[str, dict[str, Any]]]
    done: int = 0

    async def next(self, results: Sequence[tuple[Step, ToolResult]]) -> list[Step]:
        if self.done >= len(self.script) or any(not result.ok for _, result in results):
            return []
        tool, arguments = self.script[self.done]
        self.done += 1
        return [Step(f"step-{self.done}", tool, arguments)]


DEMO = [
    ("screenshot", {}),
    ("mouse", {"action": "click", "x": 300, "y": 250}),
    ("keyboard", {"action": "type", "text": "Grüße aus dem Skript 你好"}),
    ("keyboard", {"action": "hotkey", "keys": ["ctrl", "s"]}),
    ("clipboard", {"action": "write", "text": "done"}),
    ("audit", {}),
]


@dataclass
class AnthropicBrain:
    """Any endpoint that speaks Anthropic's Messages."""

    task: str
    tools: dict[str, Tool[Any]]
    url: str = "https://api.anthropic.com/v1"
    name: str = "claude-sonnet-4-5"
    messages: list[dict[str, Any]] = field(default_factory=list)

    async def next(self, results: Sequence[tuple[Step, ToolResult]]) -> list[Step]:
        content = [_anthropic_result(step, result) for step, result in results] or self.task
        self.messages.append({"role": "user", "content": content})
        schemas = [tool.schema() for tool in self.tools.values()]
        body = {
            "model": self.name,
            "max_tokens": 4096,
            "messages": self.messages,
            "tools": [
                {"name": one["name"], "description": one["description"], "input_schema": one["parameters"]}
                for one in schemas
            ],
        }
        headers = {"x-api-key": os.environ.get("ANTHROPIC_API_KEY", ""), "anthropic-version": "2023-06-01"}
        answer = await anyio.to_thread.run_sync(_post, f"{self.url}/messages", body, headers)
        self.messages.append({"role": "assistant", "content": answer["content"]})
        return [
            Step(part["id"], part["name"], part["input"]) for part in answer["content"] if part["type"] == "tool_use"
        ]


@dataclass
class OpenAIBrain:
    """Any endpoint that speaks OpenAI's chat completions."""

    task: str
    tools: dict[str, Tool[Any]]
    url: str = "https://api.openai.com/v1"
    name: str = "gpt-5"
    messages: list[dict[str, Any]] = field(default_factory=list)

    async def next(self, results: Sequence[tuple[Step, ToolResult]]) -> list[Step]:
        if not results:
            self.messages.append({"role": "user", "content": self.task})
        for step, result in results:
            self.messages.append({"role": "tool", "tool_call_id": step.id, "content": result.error or result.output})
        if pictures := [_openai_picture(result) for _, result in results if result.attachments]:
            self.messages.append({"role": "user", "content": pictures})
        tools = [{"type": "function", "function": tool.schema()} for tool in self.tools.values()]
        body = {"model": self.name, "messages": self.messages, "tools": tools}
        headers = {"Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', '')}"}
        answer = await anyio.to_thread.run_sync(_post, f"{self.url}/chat/completions", body, headers)
        message = answer["choices"][0]["message"]
        self.messages.append(message)
        calls = message.get("tool_calls") or []
        return [
            Step(one["id"], one["function"]["name"], json.loads(one["function"]["arguments"] or "{}")) for one in calls
        ]


def _anthropic_result(step: Step, result: ToolResult) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "text", "text": result.error or result.output or result.title}]
    for one in result.attachments:
        data = base64.b64encode(one.content).decode("ascii")
        parts.append({"type": "image", "source": {"type": "base64", "media_type": one.media_type, "data": data}})
    return {"type": "tool_result", "tool_use_id": step.id, "content": parts, "is_error": not result.ok}


def _openai_picture(result: ToolResult) -> dict[str, Any]:
    one = result.attachments[0]
    data = base64.b64encode(one.content).decode("ascii")
    return {"type": "image_url", "image_url": {"url": f"data:{one.media_type};base64,{data}"}}


def _post(url: str, body: dict[str, Any], headers: dict[str, str]) -> Any:
    if not url.startswith(("https://", "http://")):
        raise ValueError("the endpoint must be an http address")
    request = urllib.request.Request(  # noqa: S310  # checked above
        url, json.dumps(body).encode(), {"content-type": "application/json", **headers}
    )
    with urllib.request.urlopen(request, timeout=120) as response:  # noqa: S310  # checked above
        return json.load(response)


async def ask_in_terminal(asked: PermissionAsked) -> bool:
    """Ask the person before every act."""
    answer = await anyio.to_thread.run_sync(input, f"{asked.tool}: {asked.description}? [y/N] ")
    return answer.strip().lower() in ("y", "yes")


async def demo() -> int:
    """The script on a simulated desktop; checks that the desktop shows what the script did."""
    computer = SimulatedComputer()
    window = computer.world.open("editor", "Notes", Rect(x=100, y=100, width=600, height=400))
    history = await run_agent(ScriptedBrain(DEMO), toolbox(), ToolContext("demo", computer))
    print(f"The window now holds: {window.text!r}")
    return 0 if len(history) == len(DEMO) and window.text == "Grüße aus dem Skript 你好" else 1


async def with_model(arguments: argparse.Namespace) -> int:
    """A model on this machine's desktop."""
    computer, tools = this_computer(), toolbox()
    kind = AnthropicBrain if arguments.model == "anthropic" else OpenAIBrain
    brain = kind(arguments.task, tools)
    brain.url, brain.name = arguments.url or brain.url, arguments.name or brain.name
    handler = None if arguments.yes else ask_in_terminal
    try:
        await run_agent(brain, tools, ToolContext("agent", computer, handler))
    finally:
        await computer.aclose()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Look, think, act, until done.")
    parser.add_argument("task", nargs="?", default="Describe what is on the screen.")
    parser.add_argument("--model", choices=["anthropic", "openai"], help="left out: a script on a simulated desktop")
    parser.add_argument("--url", help="another endpoint of the same kind")
    parser.add_argument("--name", help="the model's name")
    parser.add_argument("--yes", action="store_true", help="do not ask before acts")
    arguments = parser.parse_args()
    return anyio.run(with_model, arguments) if arguments.model else anyio.run(demo)


if __name__ == "__main__":
    sys.exit(main())
