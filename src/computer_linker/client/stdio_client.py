"""A small MCP client over stdio: starts the program as any client would, and talks to it line by line."""

import contextlib
import json
import os
import selectors
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from computer_linker.client.channel import ClientFailed

_PROTOCOL = "2025-11-25"

__all__ = ["ClientFailed", "StdioClient"]


class StdioClient:
    """One conversation. Use it as a context manager: the program ends with it."""

    def __init__(self, command: list[str], home: Path, deadline_s: float = 60.0) -> None:
        self._deadline_s = deadline_s
        self._numbers = 0
        self._buffer = b""
        self._program = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "COMPUTER_LINKER_HOME": os.fspath(home)},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        program = self._program
        for pipe in (program.stdin, program.stdout):
            if pipe is not None:
                # What could not be sent to a program that has ended is still in the buffer.
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        try:
            program.wait(timeout=5)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait(timeout=5)
        if program.stderr is not None:
            program.stderr.close()

    def initialize(self) -> dict[str, Any]:
        """Shake hands; what the server says of itself."""
        about = {"name": "computer-linker self-test", "version": "1"}
        answer = self.request("initialize", {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": about})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The result of one request; notifications in between are passed over."""
        self._numbers += 1
        self._send({"jsonrpc": "2.0", "id": self._numbers, "method": method, "params": params or {}})
        until = time.monotonic() + self._deadline_s
        while True:
            message = json.loads(self._line(until))
            if message.get("id") == self._numbers and "method" not in message:
                break
        if "error" in message:
            raise ClientFailed(f"{method} was answered with an error: {message['error'].get('message')}")
        result: dict[str, Any] = message["result"]
        return result

    def tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool; the envelope (or the info object) its text carries."""
        result = self.request("tools/call", {"name": name, "arguments": arguments})
        texts = [block["text"] for block in result["content"] if block["type"] == "text"]
        value: dict[str, Any] = json.loads(texts[0])
        return value

    def _send(self, message: dict[str, Any]) -> None:
        assert self._program.stdin is not None
        try:
            self._program.stdin.write(json.dumps(message).encode() + b"\n")
            self._program.stdin.flush()
        except BrokenPipeError:
            raise ClientFailed(f"the program ended: {self._said()}") from None

    def _line(self, until: float) -> bytes:
        assert self._program.stdout is not None
        source = self._program.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(source, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(max(0.0, until - time.monotonic())):
                    raise ClientFailed("the program did not answer in time")
                data = os.read(source, 1 << 20)
                if not data:
                    raise ClientFailed(f"the program ended: {self._said()}")
                self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _said(self) -> str:
        """What the program said on stderr before it ended."""
        assert self._program.stderr is not None
        try:
            self._program.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "it closed its output"
        lines = self._program.stderr.read().decode("utf-8", "replace").splitlines()
        return lines[0].removeprefix("error: ") if lines else f"exit code {self._program.returncode}"
