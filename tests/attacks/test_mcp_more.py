"""MCP messages that mean two things, answers nobody asked for, and sessions: what is not plainly a request does nothing."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from support.oauth import Browser, tokens
from support.road import folder_scope
from support.service import (
    LEGACY,
    META,
    TOKEN,
    Http,
    Service,
    message_of,
    modern_headers,
    owner,
    rpc,
    serving,
    wait_for,
)
from support.sleepers import running, sleeping

ASKS = META | {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
YES = {"confirm": {"action": "accept", "content": {"decision": "Allow once"}}}
MARK = "x.txt"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("mcp")
    scopes = [folder_scope(folder / "root"), folder_scope(folder / "asked", "asked", confirm="all")]
    (folder / "asked").mkdir()
    with serving(folder, token=TOKEN, scopes=scopes) as served:
        yield served


@pytest.fixture(scope="module")
def other(service: Service) -> str:
    """The access token of another caller, who may do the same."""
    groups = ["linker:read", "linker:write", "linker:run"]
    return str(tokens(Browser(service.base), scope=["app", "asked"], group=groups)[1]["access_token"])


def write(scope: str = "app", target: str = MARK, meta: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
    arguments = {"scope": scope, "op": "file.write", "target": target, "input": {"content": "x"}}
    given = {"name": "computer_operation", "arguments": arguments, "_meta": meta or META, **params}
    return rpc(1, "tools/call", given)


def send(service: Service, message: Any, token: str = TOKEN, **headers: str) -> tuple[int, Any]:
    """One message of the newer era in its headers, or others; a message that is no object goes as it is."""
    link = Http(service.port, token)
    try:
        given = modern_headers("tools/call", {"name": "computer_operation"})
        changed = {name.replace("_", "-"): value for name, value in headers.items()}
        status, body = link.send("POST", "/mcp", message, {**given, **changed})
        return status, message_of(body) if body else None
    finally:
        link.close()


def question(service: Service, target: str) -> str:
    """The state the owner's client is given with a question about writing this file."""
    status, told = send(service, write("asked", target, ASKS))
    assert (status, told["result"]["resultType"]) == (200, "input_required"), told
    return str(told["result"]["requestState"])


@pytest.mark.parametrize("case", ["another principal", "other parameters", "another scope", "a second time", "denied"])
def test_the_state_of_a_question_is_good_for_that_question_alone(service: Service, other: str, case: str) -> None:
    """MCP-017."""
    asked, name = service.root.parent / "asked", f"{case}.txt"
    state = question(service, name)
    token, target, scope = TOKEN, name, "asked"
    match case:
        case "another principal":
            token = other
        case "other parameters":
            target = "elsewhere.txt"
        case "another scope":
            scope = "app"
        case "a second time":
            owner(service, "approvals", "allow-client", "tests")
            state = question(service, name)
            send(service, write("asked", name, ASKS, requestState=state, inputResponses=YES))
            assert (asked / name).read_text() == "x", "the first time it is good"
            (asked / name).unlink()
        case "denied":
            no = {"confirm": {"action": "accept", "content": {"decision": "Do not allow"}}}
            send(service, write("asked", name, ASKS, requestState=state, inputResponses=no))
    given = write(scope, target, ASKS, requestState=state, inputResponses=YES)
    status, told = send(service, given, token)
    assert status in (200, 400, 403)
    if case != "another scope":  # which asks nobody
        assert '"ok":true' not in json.dumps(told, separators=(",", ":")).replace("\\", "")
    assert list(asked.iterdir()) == []
    if case == "a second time":
        owner(service, "approvals", "disallow-client", "tests")


@pytest.mark.parametrize(
    "message",
    [
        [write()], [], [write(), write()], write() | {"result": {}}, write() | {"error": {"code": 1, "message": "x"}},
        write() | {"jsonrpc": "1.0"}, write() | {"jsonrpc": 2.0}, {**write(), "jsonrpc": None}, write() | {"id": "a" * 300},
        write() | {"id": {"a": 1}}, write() | {"method": ["tools/call"]}, write() | {"params": ["computer_operation"]},
        write(meta=META | {"progressToken": "p" * 300}), write(meta=META | {"progressToken": {"a": 1}}),
        write(meta=META | {"io.modelcontextprotocol/protocolVersion": LEGACY}), write(meta={"a": 1}), "tools/call", 7, None,
        {"jsonrpc": "2.0", "id": "computer-linker-1", "result": YES["confirm"]},
        b"\xef\xbb\xbf" + json.dumps(write()).encode(), json.dumps(write()).encode("utf-16"),
        json.dumps(write()).encode() + json.dumps(write()).encode(), json.dumps(write()).replace("1", "NaN", 1).encode(),
        json.dumps(write()).replace('"op"', '"op": "file.stat", "\\u006fp"').encode(),
    ],
)  # fmt: skip
def test_what_is_not_plainly_one_request_is_refused(service: Service, message: Any) -> None:
    status, told = send(service, message if isinstance(message, bytes) else json.dumps(message).encode())
    assert status == 400
    assert told["error"]["code"] in (-32700, -32600, -32602, -32020)
    assert "validation error" not in told["error"]["message"].lower(), "nothing of how it was read"
    assert not (service.root / MARK).exists()


def test_a_call_that_wants_no_answer_is_not_made(service: Service) -> None:
    message = write()
    del message["id"]
    assert send(service, message)[0] in (202, 400)
    assert not (service.root / MARK).exists()


@pytest.mark.parametrize(
    "headers",
    [
        {"mcp_method": "tools/list"}, {"mcp_method": "TOOLS/CALL"}, {"mcp_name": "get_computer_info"}, {"mcp_name": ""},
        {"mcp_name": "Computer_Operation"}, {"mcp_name": "=?base64?!!!!?="}, {"mcp_protocol_version": LEGACY},
        {"mcp_name": "=?base64?Y29tcHV0ZXJfb3BlcmF0aW9uDQo=?="}, {"mcp_protocol_version": "2099-01-01"},
        {"mcp_name": "=?base64?PT9iYXNlNjQ/WTI5dGNIVjBaWEpmYjNCbGNtRjBhVzl1Pz0=?="},
    ],
)  # fmt: skip
def test_headers_that_tell_a_gateway_something_else_are_refused(service: Service, headers: dict[str, str]) -> None:
    assert send(service, write(), **headers)[0] == 400
    assert not (service.root / MARK).exists()


def hello(name: str) -> dict[str, Any]:
    about = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": name, "version": "1"}}
    return rpc(1, "initialize", about)


@pytest.mark.parametrize("session", ["0" * 32, "../../etc/passwd", "a" * 5000, "", "chosen-by-a-stranger"])
def test_a_session_id_is_ours_to_give(service: Service, session: str) -> None:
    link = service.http()
    headers = {"mcp-session-id": session, "mcp-protocol-version": LEGACY}
    for message in (hello("x"), rpc(2, "tools/call", write()["params"] | {"_meta": {}})):
        assert link.send("POST", "/mcp", message, headers)[0] == 404
    assert link.send("DELETE", "/mcp", None, headers)[0] == 404
    link.close()
    assert not (service.root / MARK).exists()


def test_who_opens_many_sessions_ends_only_their_own(service: Service, other: str) -> None:
    owner, crowd = service.http(), Http(service.port, other)
    owner.initialize()
    for _ in range(1100):
        assert crowd.send("POST", "/mcp", hello("crowd"))[0] == 200
    assert owner.legacy("ping")["result"] == {}
    owner.close()
    crowd.close()


def test_a_handshake_is_kept_for_long_so_it_is_small(service: Service) -> None:
    link = service.http()
    status, body = link.send("POST", "/mcp", hello("a" * 100_000))
    assert (status, message_of(body)["error"]["code"]) == (400, -32600)
    assert "mcp-session-id" not in link.headers
    link.close()


def test_an_id_still_under_way_in_a_session_is_not_taken_twice(service: Service) -> None:
    """Else the first call could no longer be cancelled."""
    links = [service.http() for _ in range(3)]
    links[0].initialize()
    headers = links[0].session_headers()
    call = rpc(7, "tools/call", sleeping("4719"))
    answers: list[tuple[int, bytes]] = []
    first = threading.Thread(target=lambda: answers.append(links[0].send("POST", "/mcp", call, headers)))
    first.start()
    try:
        wait_for(lambda: running("4719"))
        again = rpc(7, "tools/call", write()["params"] | {"_meta": {}})
        status, body = links[1].send("POST", "/mcp", again, headers)
        assert (status, message_of(body)["error"]["code"]) == (400, -32600)
        assert not (service.root / MARK).exists()
    finally:
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        assert links[2].send("POST", "/mcp", cancel, headers)[0] == 202
        first.join(30)
    wait_for(lambda: not running("4719"))
    assert answers[0][0] == 200
    for link in links:
        link.close()


def test_another_caller_cannot_cancel_or_end_a_session(service: Service, other: str) -> None:
    owner, thief = service.http(), Http(service.port, other)
    owner.initialize()
    headers = owner.session_headers()
    call = rpc(9, "tools/call", sleeping("4720"))
    answers: list[tuple[int, bytes]] = []
    caller = threading.Thread(target=lambda: answers.append(owner.send("POST", "/mcp", call, headers)))
    caller.start()
    try:
        wait_for(lambda: running("4720"))
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}
        assert thief.send("POST", "/mcp", cancel, headers)[0] == 404
        assert thief.send("DELETE", "/mcp", None, headers)[0] == 404
        assert running("4720"), "it goes on"
    finally:
        mine = service.http()
        assert mine.send("POST", "/mcp", cancel, headers)[0] == 202
        mine.close()
        caller.join(30)
    wait_for(lambda: not running("4720"))
    owner.close()
    thief.close()
