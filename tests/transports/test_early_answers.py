"""The stdio shim answers the opening of a connection itself while a service starts, and hands the connection over."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from computer_linker import home as places
from computer_linker.model.envelope import is_envelope
from computer_linker.transports.mcp.early import FILE_NAME
from support.events import owners_history
from support.lines import PYTHON, Lines, own_service, stdio
from support.service import DEADLINE_S, LEGACY, META, end_service, rpc, wait_for, write_config

INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
CODEX = {"name": "codex-mcp-client", "version": "1"}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of answers as a service writes it."""
    place = tmp_path_factory.mktemp("served")
    folder = place / "home"
    write_config(folder, place / "root")
    with own_service(folder), stdio(folder):
        wait_for(lambda: (folder / FILE_NAME).exists())
        return (folder / FILE_NAME).read_bytes()


@pytest.fixture
def home(tmp_path: Path, answers: bytes) -> Iterator[Path]:
    """A state folder with the answers of a service that has run, where none runs."""
    folder = tmp_path / "home"
    write_config(folder, tmp_path / "root")
    (tmp_path / "root" / "notes.txt").write_text("hello")
    (folder / FILE_NAME).write_bytes(answers)
    (folder / FILE_NAME).chmod(0o600)
    with own_service(folder):
        yield folder


def opening(client: dict[str, str], era: str) -> list[dict[str, Any]]:
    if era == "modern":
        meta = {"_meta": {**META, "io.modelcontextprotocol/clientInfo": client}}
        return [rpc(1, "server/discover", meta), rpc(2, "tools/list", meta)]
    params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {**client}}
    return [rpc(1, "initialize", params), rpc(2, "tools/list"), rpc(3, "ping")]


def opened(lines: Lines, client: dict[str, str], era: str = "handshake") -> list[Any]:
    """The results of the opening, all of it sent at once."""
    messages = opening(client, era)
    lines.send_raw(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    return [lines.answer_to(message["id"])["result"] for message in messages]


def break_config(home: Path) -> str:
    before = (home / "config.json").read_text()
    (home / "config.json").write_text(before.replace('"port": 0', '"port": "none"'))
    return before


CALL = {"name": "computer_operation", "arguments": {"scope": "app", "op": "file.read", "target": "notes.txt"}}


KINDS = [("codex-mcp-client", "split", "handshake"), ("claude-code", "", "modern"), ("another", "", "handshake")]


def test_the_shim_answers_as_the_service_does(home: Path) -> None:
    def by(client: str, surface: str, era: str, *, of_service: bool) -> list[Any]:
        who, env = {"name": client, "version": "1"}, {"COMPUTER_LINKER_MCP_TOOL_SURFACE": surface} if surface else {}
        with stdio(home, handshake=False, **env) as lines:
            first = opened(lines, who, era)
            if not of_service:
                return first[1:]
            # Only the service has these, so the shim has left when they are answered.
            assert lines.ask("resources/list", {"_meta": META} if era == "modern" else None)["result"]
            return [lines.ask(message["method"], message.get("params"))["result"] for message in opening(who, era)[1:]]

    with stdio(home):
        live = [by(*kind, of_service=True) for kind in KINDS]
    end_service(home)
    break_config(home)
    assert [by(*kind, of_service=False) for kind in KINDS] == live


def test_a_connection_goes_on_where_the_shim_left_it(home: Path) -> None:
    with stdio(home, handshake=False) as lines:
        opened(lines, CODEX)
        read = lines.ask("tools/call", CALL)["result"]
    assert read["content"][0]["text"] == "notes.txt, 5 bytes:\nhello", "the rendering of this client"
    assert owners_history(home)[0]["client"] == "codex-mcp-client/1"


def test_a_service_that_cannot_start_makes_each_call_fail_with_its_reason_until_it_can(home: Path) -> None:
    before = break_config(home)
    with stdio(home, handshake=False) as lines:
        opened(lines, CODEX)
        refused = lines.ask("tools/call", CALL)["result"]
        assert refused["isError"] and "port" in refused["content"][0]["text"], refused
        assert "port" in lines.ask("resources/list")["error"]["message"]
        (home / "config.json").write_text(before)
        assert "hello" in lines.ask("tools/call", CALL)["result"]["content"][0]["text"]


@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_a_call_that_no_service_takes_is_refused_in_the_clients_rendering(home: Path, era: str) -> None:
    break_config(home)

    def refused(client: str, **env: str) -> dict[str, Any]:
        with stdio(home, handshake=False, **env) as lines:
            opened(lines, {"name": client, "version": "1"}, era)
            info = {**META, "io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"}}
            found: dict[str, Any] = lines.ask("tools/call", {**CALL, **({"_meta": info} if era == "modern" else {})})[
                "result"
            ]
            assert found["isError"] and found.get("resultType") == ("complete" if era == "modern" else None)
            return found

    for result in (refused("another"), refused("codex-mcp-client", COMPUTER_LINKER_RENDER="json")):
        envelope = json.loads(result["content"][0]["text"])
        assert is_envelope(envelope) and result["structuredContent"] == envelope
        assert (envelope["scope"], envelope["op"]) == ("app", "file.read")
        assert envelope["error"]["code"] == "provider_unavailable" and "port" in envelope["error"]["message"]
    for result in (refused("codex-mcp-client"), refused("another", COMPUTER_LINKER_RENDER="model")):
        assert result["content"][0]["text"].startswith("provider_unavailable: ") and "structuredContent" not in result
        assert result["_meta"]["computer-linker/envelope"]["errorCode"] == "provider_unavailable"


@contextmanager
def hanging(home: Path) -> Iterator[None]:
    """A service that listens and never answers."""
    listener = places.listen(str(home))
    try:
        yield
    finally:
        listener.close()
        (home / places.SOCKET_NAME).unlink()


def test_the_shim_of_a_service_that_hangs_ends_with_its_client(home: Path) -> None:
    with hanging(home), stdio(home, handshake=False) as lines:
        opened(lines, CODEX)
        assert lines.process is not None and lines.process.stdin is not None
        lines.process.stdin.close()
        assert lines.process.wait(DEADLINE_S) == 0


def test_a_call_to_a_service_that_hangs_is_refused_after_a_while(home: Path) -> None:
    with hanging(home), stdio(home, handshake=False) as lines:
        opened(lines, CODEX)
        refused = lines.answer_to(lines.begin("tools/call", CALL), 2 * DEADLINE_S)["result"]
        assert refused["isError"] and "does not answer" in refused["content"][0]["text"]


@pytest.mark.parametrize("is_answered", [True, False])
def test_the_end_of_a_handshake_is_kept_for_the_service_that_takes_it(home: Path, is_answered: bool) -> None:
    code = (
        "import os, sys; from computer_linker.transports.mcp import early\n"
        "one = early.load(sys.argv[1], {}); one.read(); os.write(2, one.handed_over()[1])"
    )
    first = opening(CODEX, "handshake")[0]
    if not is_answered:
        del first["params"]["clientInfo"]["version"]
    lines = [json.dumps(message) for message in (first, INITIALIZED)]
    ran = subprocess.run(
        [PYTHON, "-I", "-c", code, str(home)], input="".join(f"{line}\n" for line in lines).encode(), capture_output=True,
        check=True,
    )  # fmt: skip
    assert ran.stderr.decode().splitlines() == ([] if is_answered else lines)
    assert bool(ran.stdout) is is_answered


def test_a_list_of_tools_that_was_outdated_is_announced_as_changed(home: Path) -> None:
    answers = home / FILE_NAME
    older = answers.read_text().replace("Run one operation in a scope", "Run an operation")
    answers.write_text(older.replace('{"stamp":"', '{"stamp":"older'))
    with stdio(home, handshake=False) as lines:
        outdated = opened(lines, CODEX)[1]
        assert "Run an operation" in json.dumps(outdated)
        assert lines.receive() == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        assert "Run one operation in a scope" in json.dumps(lines.ask("tools/list")["result"])
    wait_for(lambda: "Run one operation" in answers.read_text())


@pytest.mark.parametrize("content", ["[", '{"profiles": []}'])
def test_a_broken_file_of_answers_is_not_used(home: Path, content: str) -> None:
    (home / FILE_NAME).write_text(content)
    with stdio(home, handshake=False) as lines:
        assert len(opened(lines, CODEX)[1]["tools"]) == 3
        assert lines.ask("tools/call", CALL)["result"]["isError"] is False


def test_input_that_ended_before_the_service_is_up_is_answered(home: Path) -> None:
    with stdio(home, handshake=False) as lines:
        lines.send_raw(
            b"".join(json.dumps(m).encode() + b"\n" for m in [*opening(CODEX, "handshake"), rpc(9, "tools/call", CALL)])
        )
        assert lines.process is not None and lines.process.stdin is not None
        lines.process.stdin.close()
        assert "hello" in lines.answer_to(9)["result"]["content"][0]["text"]
