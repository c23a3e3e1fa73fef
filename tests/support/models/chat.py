"""A scripted model that speaks as much of the Chat Completions API as opencode asks of it."""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.models.scripted import Answering, Model, Step, serving


@contextmanager
def chat_model(*steps: Step) -> Iterator[Model]:
    """The model, served on loopback until the end."""
    with serving(Model(*steps), _Chat) as model:
        yield model


class _Chat(Answering):
    def do_POST(self) -> None:
        body = self.body()
        self.model.requests.append(body)
        answered = sum(1 for message in body.get("messages", []) if message.get("role") == "tool")
        # A request without tools asks for a title of the talk.
        step = self.model.step(answered) if body.get("tools") else {"say": "title"}
        choices = [
            {"index": 0, "delta": _delta(step), "finish_reason": None},
            {"index": 0, "delta": {}, "finish_reason": "tool_calls" if "call" in step else "stop"},
        ]
        about = {"id": "chat", "object": "chat.completion.chunk", "created": 1, "model": "mock-model"}
        chunks = [json.dumps({**about, "choices": [choice]}) for choice in choices]
        data = "".join(f"data: {chunk}\n\n" for chunk in [*chunks, "[DONE]"]).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _delta(step: Step) -> dict[str, Any]:
    if "call" not in step:
        return {"role": "assistant", "content": step["say"]}
    called = {"name": step["call"], "arguments": json.dumps(step["args"])}
    call = {"index": 0, "id": f"call_{uuid.uuid4().hex[:8]}", "type": "function", "function": called}
    return {"role": "assistant", "tool_calls": [call]}
