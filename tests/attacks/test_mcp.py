"""Attacks that speak MCP: odd ids and headers, state that was not given, a caller who leaves, readers who do not read."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from attacks.ground import children_of
from support.road import folder_scope
from support.service import (
    META,
    PROGRAM,
    TOKEN,
    Http,
    Service,
    environment,
    message_of,
    modern_headers,
    raw_http,
    rpc,
    serving,
    wait_for,
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("mcp"), token=TOKEN) as running:
        yield running


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service whose scope needs a person's yes."""
    base = tmp_path_factory.mktemp("asking")
    with serving(base, token=TOKEN, scopes=[folder_scope(base / "root", confirm="all")]) as running:
        yield running


def send(service: Service, message: dict[str, Any], **headers: str) -> tuple[int, bytes]:
    """One message of the newer era, with its headers or others."""
    link = service.http()
    try:
        given = modern_headers(message["method"], message.get("params"))
        return link.send("POST", "/mcp", message, {**given, **{k.replace("_", "-"): v for k, v in headers.items()}})
    finally:
        link.close()


def call(op: str, target: str | None = None, request_id: Any = 1, input: Any = None, **params: Any) -> dict[str, Any]:
    """A `tools/call` of one operation."""
    given = {"scope": "app", "op": op, "target": target, "input": input}
    arguments = {name: part for name, part in given.items() if part is not None}
    return rpc(
        request_id, "tools/call", {"name": "computer_operation", "arguments": arguments, "_meta": META, **params}
    )


def test_an_encoded_name_is_compared_by_what_it_means(service: Service) -> None:
    """MCP-003."""
    assert send(service, call("file.stat", "."), mcp_name="=?base64?Y29tcHV0ZXJfb3BlcmF0aW9u?=")[0] == 200
    assert send(service, call("file.stat", "."), mcp_name="=?base64?Z2V0X2NvbXB1dGVyX2luZm8=?=")[0] == 400


@pytest.mark.parametrize("request_id", [None, True, [], {}, 1.5])
def test_an_id_that_is_none_is_refused(service: Service, request_id: Any) -> None:
    """MCP-012 and its like."""
    status, body = send(service, call("file.write", "odd-id", request_id, {"content": "x"}))
    assert status == 400
    assert json.loads(body)["error"]["code"] == -32600
    assert not (service.root / "odd-id").exists()


@pytest.mark.parametrize("state", ["eyJhcHByb3ZlZCI6dHJ1ZX0=", "", "A" * 100_000, "\u0000", "....", 5, None])
def test_state_that_we_never_gave_approves_nothing(asking: Service, state: Any) -> None:
    """MCP-016: the scope asks a person, and nobody did."""
    answers = {"approval": {"action": "accept", "content": {"answer": "allow once"}}}
    given = call("file.write", "approved", input={"content": "x"}, requestState=state, inputResponses=answers)
    status, body = send(asking, given)
    assert status in (200, 400)
    assert b'"ok":true' not in body
    assert not (asking.root / "approved").exists()


def test_a_caller_who_leaves_takes_the_command_along(service: Service) -> None:
    """MCP-018."""
    message = json.dumps(call("command.run", ".", input={"command": ["sleep", "4711"]})).encode()
    headers = {
        **modern_headers("tools/call", {"name": "computer_operation"}), "host": f"127.0.0.1:{service.port}",
        "authorization": f"Bearer {TOKEN}", "content-type": "application/json",
        "accept": "application/json, text/event-stream", "content-length": str(len(message)),
    }  # fmt: skip
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as link:
        link.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + message)
        wait_for(lambda: _sleepers(service))
    wait_for(lambda: not _sleepers(service))

    def is_recorded() -> bool:
        told = message_of(send(service, call("history.last"))[1])
        events = json.loads(told["result"]["content"][0]["text"])["data"]["events"]
        return bool(next(event.get("errorCode") for event in events if event["op"] == "command.run") == "aborted")

    wait_for(is_recorded)


def _sleepers(service: Service) -> list[int]:
    return [pid for pid in children_of(service.process.pid) if b"4711" in _command_line(pid)]


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def test_what_a_command_prints_never_stands_in_the_stream_of_messages(tmp_path: Path) -> None:
    """MCP-021."""
    with serving(tmp_path) as service:
        forged = '{"jsonrpc":"2.0","id":1,"result":{"forged":true}}'
        code = f"import os\nfor fd in range(256):\n try: os.write(fd, b'''{forged}\\n''')\n except OSError: pass"
        asked = call("command.run", ".", request_id=7, input={"command": [sys.executable, "-c", code]})
        done = subprocess.run(
            [*PROGRAM, "stdio"], input=json.dumps(asked).encode() + b"\n", env=environment(service.home),
            capture_output=True, timeout=240, check=False,
        )  # fmt: skip
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert [message["id"] for message in messages] == [7]
    assert "forged" not in messages[0]["result"]


def test_a_reader_who_does_not_read_costs_little(service: Service) -> None:
    """RES-012: many large answers asked for, none read."""
    (service.root / "large.txt").write_text("a line of text as they are\n" * 240_000)
    body = json.dumps(call("file.read", "large.txt")).encode()
    headers = "".join(f"{k}: {v}\r\n" for k, v in modern_headers("tools/call", {"name": "computer_operation"}).items())
    request = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nAuthorization: Bearer {TOKEN}\r\n{headers}"
        f"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body
    link = service.http()
    link.send("GET", "/healthz")
    before = service.memory_mb()
    held = []
    for _ in range(20):
        slow = socket.create_connection(("127.0.0.1", service.port), timeout=10)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(request)
        held.append(slow)
    for _ in range(20):
        assert link.send("GET", "/healthz")[0] == 200
    assert service.memory_mb() - before < 64
    for slow in held:
        slow.close()
    link.close()


def test_a_file_that_grows_while_it_is_read_has_an_end(service: Service) -> None:
    """SPEC-010."""
    done = threading.Event()

    def grow() -> None:
        with (service.root / "grow").open("wb") as file:
            while not done.is_set() and file.tell() < 1 << 30:
                file.write(b"x" * 99 + b"\n")

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        wait_for(lambda: (service.root / "grow").exists() and (service.root / "grow").stat().st_size > 1 << 20)
        for _ in range(3):
            status, body = send(service, call("file.read", "grow"))
            assert status == 200
            assert len(body) < 16 << 20
    finally:
        done.set()
        writer.join()
        (service.root / "grow").unlink()


def test_a_flood_of_small_files_leaves_the_history_whole(service: Service) -> None:
    """RES-036, a short piece of it: the record of every one is there, and others are served meanwhile."""
    link = service.http()
    made = 0
    for number in range(300):
        message = call("file.create", f"flood/f{number}", number, {"content": ""})
        message["params"]["arguments"]["options"] = {"createParents": True}
        _, raw = link.send("POST", "/mcp", message, modern_headers("tools/call", message["params"]))
        made += json.loads(message_of(raw)["result"]["content"][0]["text"])["ok"]
    link.close()
    assert len(os.listdir(service.root / "flood")) == made
    told = json.loads(message_of(send(service, call("history.verify"))[1])["result"]["content"][0]["text"])
    assert told["ok"], told


def test_the_socket_answers_its_owner_alone(service: Service) -> None:
    """HTTP-071: even when somebody opened its mode and its folder."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to be another user")
    found = [path for path in service.home.rglob("*") if path.is_socket()]
    assert found
    probe = (
        "import os, socket, sys\nos.setgid(65534); os.setuid(65534)\n"
        "link = socket.socket(socket.AF_UNIX); link.settimeout(5)\n"
        "try:\n link.connect(sys.argv[1])\n link.sendall(sys.argv[2].encode() + b'\\n')\n print(link.recv(65536))\n"
        "except OSError as error: print(type(error).__name__)"
    )
    for path in found:
        modes = {place: place.stat().st_mode for place in (path, *path.parents) if place.owner() == "root"}
        try:
            for place, mode in modes.items():
                # The way there is opened, and no more: other tests run below the same folders.
                place.chmod(0o777 if place in (path, path.parent) else mode & 0o7777 | 0o011)
            spoken = subprocess.run(
                [sys.executable, "-I", "-c", probe, str(path), json.dumps(rpc(1, "tools/list", {"_meta": META}))],
                capture_output=True, text=True, timeout=30, check=False, cwd="/",
            )  # fmt: skip
        finally:
            for place, mode in modes.items():
                place.chmod(mode & 0o7777)
        assert "inputSchema" not in spoken.stdout
        assert spoken.returncode == 0, spoken.stderr


def test_a_public_port_scan_is_no_news(service: Service) -> None:
    for probe in (b"\0" * 64, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"SSH-2.0-x\r\n", b"HELP\r\n\r\n"):
        answer = raw_http(service.port, probe)
        assert answer == b"" or answer.split(b" ")[1] == b"400"
    with_link = Http(service.port)
    assert with_link.send("GET", "/healthz")[0] == 200
    with_link.close()
