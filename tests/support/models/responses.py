"""A scripted model that speaks as much of the Responses API as Codex asks of it."""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.models.scripted import Answering, Model, Step, serving

_USAGE = {
    "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15,
}  # fmt: skip


@contextmanager
def responses_model(*steps: Step) -> Iterator[Model]:
    """The model, served on loopback until the end."""
    with serving(Model(*steps), _Responses) as model:
        yield model


class _Responses(Answering):
    def do_POST(self) -> None:
        body = self.body()
        self.model.requests.append(body)
        step = self.model.step(_calls_since_the_prompt(body))
        if "http" in step:
            self.answer({"error": {"message": step.get("message", "scripted"), "type": "server_error"}}, step["http"])
            return
        about = {"id": f"resp_{uuid.uuid4().hex[:12]}", "object": "response", "status": "in_progress", "output": []}
        item = _item(step)
        done = {**about, "status": "completed", "output": [item], "usage": _USAGE}
        self.stream(
            [
                {"type": "response.created", "response": about},
                {"type": "response.output_item.done", "output_index": 0, "item": item},
                {"type": "response.completed", "response": done},
            ]
        )


def _calls_since_the_prompt(body: dict[str, Any]) -> int:
    """How many tool answers follow the newest words of the user."""
    count = 0
    for item in reversed(body.get("input", [])):
        if item.get("type") == "message" and item.get("role") == "user":
            break
        if str(item.get("type", "")).endswith("_call_output"):
            count += 1
    return count


def _item(step: Step) -> dict[str, Any]:
    if "call" in step:
        named = {"namespace": step["namespace"]} if "namespace" in step else {}
        return {
            "type": "function_call", "id": f"fc_{uuid.uuid4().hex[:8]}", "call_id": f"call_{uuid.uuid4().hex[:8]}",
            "name": step["call"], "arguments": json.dumps(step["args"]), "status": "completed", **named,
        }  # fmt: skip
    content = [{"type": "output_text", "text": step["say"], "annotations": []}]
    return {
        "type": "message", "id": f"msg_{uuid.uuid4().hex[:8]}", "role": "assistant", "status": "completed",
        "content": content,
    }  # fmt: skip


def shell(command: str) -> Step:
    """A step that runs a command."""
    return {"call": "exec_command", "args": {"cmd": command}}


def patching(text: str) -> Step:
    """A step that edits files by Codex's own patch program."""
    return shell(f"apply_patch <<'EOF'\n*** Begin Patch\n{text}\n*** End Patch\nEOF")
