"""What both scripted model servers share: the steps they follow, the requests they saw, and a gate a test can hold."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Step = dict[str, Any]
"""`{"say": text}`, `{"call": tool, "args": {...}}`, `{"http": status, "message": text}`; any of them
may have `"hold": true`, and then it is answered only once the test lets go."""


class Model:
    """A model that follows steps: the first request of a turn gets the first step, and so on; the last one repeats."""

    def __init__(self, *steps: Step) -> None:
        self.steps = list(steps)
        self.requests: list[dict[str, Any]] = []
        self.asked = threading.Event()
        """Set once a held step has been asked for."""
        self._go = threading.Event()
        self.port = 0

    def let_go(self) -> None:
        self._go.set()

    def step(self, index: int) -> Step:
        step = self.steps[min(index, len(self.steps) - 1)]
        if step.get("hold"):
            self.asked.set()
            self._go.wait(60)
        return step

    def said_to(self) -> str:
        """Everything the program sent, as one text."""
        return json.dumps(self.requests)


class Answering(BaseHTTPRequestHandler):
    """One connection; `model` is set by `serving`."""

    model: Model
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def body(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        return value

    def answer(self, value: Any, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, events: list[dict[str, Any]]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        # Whoever asked may have been stopped meanwhile.
        with suppress(BrokenPipeError, ConnectionResetError):
            for event in events:
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        self.close_connection = True


@contextmanager
def serving(model: Model, answering: type[Answering]) -> Iterator[Model]:
    """The model on a free port of this machine."""
    kind = type("Answers", (answering,), {"model": model})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    server.daemon_threads = True
    model.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        model.let_go()
        server.shutdown()
        server.server_close()
        thread.join(5)
