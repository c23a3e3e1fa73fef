"""A scripted model that speaks as much of generateContent as Gemini CLI asks of it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from support.models.scripted import Answering, Model, Step, serving


@contextmanager
def generate_model(*steps: Step) -> Iterator[Model]:
    """The model, served on loopback until the end."""
    with serving(Model(*steps), _Generate) as model:
        yield model


class _Generate(Answering):
    def do_GET(self) -> None:
        self.answer({}, 404)

    def do_POST(self) -> None:
        body = self.body()
        if "countTokens" in self.path:
            self.answer({"totalTokens": 1})
            return
        self.model.requests.append(body)
        parts = [part for content in body.get("contents", []) for part in content.get("parts", [])]
        step = self.model.step(sum(1 for part in parts if "functionResponse" in part))
        part = (
            {"functionCall": {"name": step["call"], "args": step["args"]}} if "call" in step else {"text": step["say"]}
        )
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        value = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}
        if "alt=sse" not in self.path:
            self.answer(value)
            return
        data = f"data: {json.dumps(value)}\r\n\r\n".encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
