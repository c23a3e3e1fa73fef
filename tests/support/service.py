"""A real service process on a state folder of its own, and plain ways to talk to it."""

import http.client
import json
import os
import queue
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from computer_linker import home as places
from support.commands import command
from support.forked import IS_MEASURED, Forked, pipe
from support.forked import PROGRAM as PROGRAM
from support.forked import environment as environment
from support.road import folder_scope
from support.waiting import wait_for as wait_for

TOKEN = "test-owner-token-0123456789abcdef"
LEGACY = "2025-11-25"
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
DEADLINE_S = 180.0
_FORKED: set[int] = set()
"""Services of this process whose first environment, being that of another program, does not name their state folder."""


def write_config(home: Path, root: Path, *, token: str | None = None, **fields: Any) -> None:
    """A private config with one folder scope, `app`, unless `scopes` says otherwise."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    root.mkdir(parents=True, exist_ok=True)
    config = {
        "schemaVersion": 1, "machineId": "test-machine", "machineName": "test", "port": 0, "ownerToken": token,
        "scopes": [folder_scope(root)], **fields,
    }  # fmt: skip
    path = home / "config.json"
    fresh = home / "config.json.new"
    fresh.write_text(json.dumps(config))
    fresh.chmod(0o600)
    fresh.replace(path)


def lock_holder(home: Path) -> int | None:
    """The id of the process that last took the state folder's lock; None before any has."""
    try:
        text = (home / places.LOCK_NAME).read_text().strip()
    except FileNotFoundError:
        return None
    return int(text) if text else None


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def end_service(home: Path) -> None:
    """End whatever serves this state folder, by its id."""
    pid = lock_holder(home)
    if pid is not None and is_alive(pid) and (pid in _FORKED or f"{home}" in _environment_of(pid)):
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not is_alive(pid))


def _environment_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


@dataclass
class Service:
    """A running `serve`: its state folder, the root of scope `app`, its process and its address."""

    home: Path
    root: Path
    process: "subprocess.Popen[bytes] | Forked"
    port: int
    token: str | None
    _errors: list[bytes] = field(default_factory=list)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.base}/mcp"

    @property
    def log(self) -> str:
        """What the service wrote to its standard error."""
        return b"".join(self._errors).decode("utf-8", "replace")

    def http(self) -> "Http":
        return Http(self.port, self.token)

    def memory_mb(self) -> float:
        """Resident memory now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024  # type: ignore[union-attr]

    def stop(self) -> int:
        """End it as a person would; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(DEADLINE_S)


@contextmanager
def serving(
    tmp_path: Path, *, token: str | None = None, env: dict[str, str] | None = None, **fields: Any
) -> Iterator[Service]:
    """A service on a free port of this machine, ended with everything it left behind."""
    home, root = tmp_path / "home", tmp_path / "root"
    if not (home / "config.json").exists():
        write_config(home, root, token=token, **fields)
    words, variables = ["serve", "--port", "0"], environment(home, **(env or {}))
    process: subprocess.Popen[bytes] | Forked
    if env or IS_MEASURED:
        # What is in the environment when a program starts can also be read from outside it.
        process = subprocess.Popen(
            [*PROGRAM, *words], env=variables,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stderr is not None
        lines: IO[bytes] = process.stderr
    else:
        read, write = pipe()
        process = Forked(words, variables, write)
        _FORKED.add(process.pid)
        write.close()
        lines = os.fdopen(os.dup(read.fileno()), "rb")
        read.close()
    errors: list[bytes] = []
    address: queue.Queue[int | None] = queue.Queue()
    reader = threading.Thread(target=_follow, args=(lines, errors, address), daemon=True)
    reader.start()
    try:
        port = address.get(timeout=DEADLINE_S)
        assert port is not None, f"the service did not start: {b''.join(errors).decode()}"
        yield Service(home, root, process, port, token, errors)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)
        _FORKED.discard(process.pid)
        reader.join(5)
        lines.close()


def _follow(lines: IO[bytes], errors: list[bytes], address: "queue.Queue[int | None]") -> None:
    for line in lines:
        errors.append(line)
        found = re.search(rb"http://(?:127\.0\.0\.1|0\.0\.0\.0):(\d+)/mcp", line)
        if found:
            address.put(int(found.group(1)))
    address.put(None)


class Http:
    """One keep-alive connection, with no help beyond what a test asks for."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self.port, self.token = port, token
        self._link = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
        self.session: str | None = None
        self.headers: dict[str, str] = {}

    def close(self) -> None:
        self._link.close()

    def send(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Status and body; a body that is not bytes goes as JSON."""
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        given = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        if self.token is not None:
            given["authorization"] = f"Bearer {self.token}"
        self._link.request(method, path, raw, {**given, **(headers or {})})
        answer = self._link.getresponse()
        content = answer.read()
        self.headers = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, content

    def initialize(self, version: str = LEGACY) -> dict[str, Any]:
        """Open a handshake-era session."""
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
        status, body = self.send("POST", "/mcp", rpc(0, "initialize", params))
        assert status == 200, body
        self.session = self.headers["mcp-session-id"]
        self.send("POST", "/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}, self.session_headers())
        answer: dict[str, Any] = message_of(body)["result"]
        return answer

    def session_headers(self) -> dict[str, str]:
        assert self.session is not None
        return {"mcp-session-id": self.session, "mcp-protocol-version": LEGACY}

    def legacy(self, method: str, params: dict[str, Any] | None = None, request_id: int = 1) -> dict[str, Any]:
        """One request of the handshake era, in the session."""
        if self.session is None:
            self.initialize()
        status, body = self.send("POST", "/mcp", rpc(request_id, method, params), self.session_headers())
        assert status == 200, body
        return message_of(body)

    def modern(self, method: str, params: dict[str, Any] | None = None, request_id: int = 1) -> dict[str, Any]:
        """One request of 2026-07-28, complete in itself."""
        status, body = self.send(
            "POST", "/mcp", rpc(request_id, method, {**(params or {}), "_meta": META}), modern_headers(method, params)
        )
        assert status in (200, 400), body
        return message_of(body)

    def control(self, action: str, **rest: Any) -> dict[str, Any]:
        """One JSON API request; its answer whatever the status."""
        answer: dict[str, Any] = json.loads(self.send("POST", "/api/v1/control", {"action": action, **rest})[1])
        return answer


def modern_headers(method: str, params: dict[str, Any] | None = None) -> dict[str, str]:
    """The headers 2026-07-28 wants beside the body."""
    headers = {"mcp-protocol-version": MODERN, "mcp-method": method}
    named = (params or {}).get("name", (params or {}).get("uri"))
    if named is not None:
        headers["mcp-name"] = named
    return headers


def rpc(request_id: Any, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    """A JSON-RPC request."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return message if params is None else {**message, "params": params}


def message_of(body: bytes) -> dict[str, Any]:
    """The last JSON-RPC message of an answer, whether it came as JSON or as a stream of events."""
    text = body.decode()
    if not text.startswith("{"):
        text = [line[5:] for line in text.splitlines() if line.startswith("data:") and line[5:].strip()][-1]
    message: dict[str, Any] = json.loads(text)
    return message


def raw_http(port: int, request: bytes, *, seconds: float = 10.0) -> bytes:
    """Everything the service says to these exact bytes until it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as link:
        link.sendall(request)
        chunks = []
        while data := link.recv(65536):
            chunks.append(data)
    return b"".join(chunks)


def owner(service: Service, *words: str) -> str:
    """What a command of the owner prints; it must succeed."""
    done = command(service.home, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout
