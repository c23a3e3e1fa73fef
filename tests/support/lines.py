"""A raw newline-delimited MCP client over any pair of descriptors: a stdio program's pipes, or the private socket."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from computer_linker import home as places
from support.service import DEADLINE_S, LEGACY, META, PROGRAM, end_service, environment, rpc


class Lines:
    """Sends messages and waits, bounded, for the ones that come back."""

    def __init__(self, read_fd: int, write_fd: int, process: "subprocess.Popen[bytes] | None" = None) -> None:
        self.read_fd, self.write_fd, self.process = read_fd, write_fd, process
        self._pending = b""
        self._ready: list[dict[str, Any]] = []
        self._next_id = 0
        self.modern = False

    def send_raw(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.write_fd, data) :]

    def send(self, message: Any) -> None:
        self.send_raw(json.dumps(message).encode() + b"\n")

    def receive(self, seconds: float = DEADLINE_S) -> dict[str, Any] | None:
        """The next message; None at the end of the stream."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.read_fd], [], [], left)[0], "no message came in time"
            data = os.read(self.read_fd, 1 << 20)
            if not data:
                return None
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def answer_to(self, request_id: Any, seconds: float = DEADLINE_S) -> dict[str, Any]:
        """The answer to one request; others, and notifications, are kept for later."""
        for kept in self._ready:
            if kept.get("id") == request_id and "method" not in kept:
                self._ready.remove(kept)
                return kept
        while True:
            message = self.receive(seconds)
            assert message is not None, "the stream ended before the answer"
            if message.get("id") == request_id and "method" not in message:
                return message
            self._ready.append(message)

    def kept(self) -> list[dict[str, Any]]:
        """What came while something else was waited for."""
        ready, self._ready = self._ready, []
        return ready

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        return self.answer_to(self.begin(method, params))

    def begin(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request without waiting; its id."""
        self._next_id += 1
        given = {**(params or {}), "_meta": {**(params or {}).get("_meta", {}), **META}} if self.modern else params
        self.send(rpc(self._next_id, method, given))
        return self._next_id

    def initialize(self, version: str = LEGACY, name: str = "tests") -> dict[str, Any]:
        """The handshake."""
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": name, "version": "1"}}
        answer: dict[str, Any] = self.ask("initialize", params)["result"]
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        """A tool's result."""
        answer = self.ask("tools/call", {"name": name, "arguments": arguments})
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def operation(self, op: str, target: Any = None, **parts: Any) -> dict[str, Any]:
        """An operation's envelope in scope `app`, from the text of the result."""
        arguments = {"scope": "app", "op": op, **({} if target is None else {"target": target}), **parts}
        envelope: dict[str, Any] = json.loads(self.tool("computer_operation", **arguments)["content"][0]["text"])
        return envelope


@contextmanager
def stdio(home: Path, *, handshake: bool = True, **env: str) -> Iterator[Lines]:
    """`computer-linker stdio` as a client starts it. Whatever service it started is ended by id afterwards."""
    process = subprocess.Popen(
        [*PROGRAM, "stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
        env=environment(home, **env),
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    try:
        lines = Lines(process.stdout.fileno(), process.stdin.fileno(), process)
        if handshake:
            lines.initialize()
            # The shim may have answered the handshake itself; this only a service does.
            lines.ask("resources/templates/list")
        yield lines
    finally:
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
        process.stdout.close()
        process.stderr.close()


@contextmanager
def stream(home: Path, *, handshake: bool = True) -> Iterator[Lines]:
    """MCP straight on the service's private socket."""
    link = places.enter(str(home), places.GREETING_STREAM)
    try:
        lines = Lines(link.fileno(), link.fileno())
        if handshake:
            lines.initialize()
        yield lines
    finally:
        link.close()


@contextmanager
def own_service(home: Path) -> Iterator[None]:
    """A state folder whose on-demand service, whoever started it, does not outlive the test."""
    try:
        yield
    finally:
        end_service(home)


PYTHON = sys.executable
