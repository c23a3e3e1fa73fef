"""A scripted model that speaks as much of the Messages API as Claude Code asks of it."""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.models.scripted import Answering, Model, Step, serving


@contextmanager
def messages_model(*steps: Step) -> Iterator[Model]:
    """The model, served on loopback until the end."""
    with serving(Model(*steps), _Messages) as model:
        yield model


class _Messages(Answering):
    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.answer({"data": []})

    def do_POST(self) -> None:
        body = self.body()
        if "count_tokens" in self.path:
            self.answer({"input_tokens": 1})
            return
        self.model.requests.append(body)
        step = self.model.step(_calls_since_the_prompt(body))
        if "http" in step:
            kind = "authentication_error" if step["http"] == 401 else "invalid_request_error"
            self.answer(
                {"type": "error", "error": {"type": kind, "message": step.get("message", "scripted")}}, step["http"]
            )
            return
        block, reason = _block(step)
        message: dict[str, Any] = {
            "id": f"msg_{uuid.uuid4().hex[:16]}", "type": "message", "role": "assistant", "model": body.get("model"),
            "content": [], "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 1},
        }  # fmt: skip
        if body.get("stream"):
            self.stream(_events(message, block, reason))
        else:
            self.answer({**message, "content": [block], "stop_reason": reason})


def _calls_since_the_prompt(body: dict[str, Any]) -> int:
    """How many tool answers follow the newest message that has words of the user only."""
    count = 0
    for message in reversed(body.get("messages", [])):
        blocks = message["content"] if isinstance(message["content"], list) else []
        results = sum(1 for block in blocks if block.get("type") == "tool_result")
        if message["role"] == "user" and not results:
            break
        count += results
    return count


def _block(step: Step) -> tuple[dict[str, Any], str]:
    if "call" in step:
        use = {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex[:16]}", "name": step["call"], "input": step["args"]}
        return use, "tool_use"
    return {"type": "text", "text": step["say"]}, "end_turn"


def _events(message: dict[str, Any], block: dict[str, Any], reason: str) -> list[dict[str, Any]]:
    if block["type"] == "text":
        empty: dict[str, Any] = {**block, "text": ""}
        delta: dict[str, Any] = {"type": "text_delta", "text": block["text"]}
    else:
        empty = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": 5},
        },
        {"type": "message_stop"},
    ]


def bash(command: str) -> Step:
    """A step that runs a command."""
    return {"call": "Bash", "args": {"command": command, "description": "a step"}}
