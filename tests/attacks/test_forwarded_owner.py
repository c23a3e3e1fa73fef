"""The owner token over a public name, a proxy, a tunnel or the network is remote: it does not answer its own question (B10)."""

import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from support.commands import command
from support.road import folder_scope
from support.service import META, TOKEN, Service, message_of, modern_headers, rpc, serving

PUBLIC = "linker.example.com"
ALLOW = {"confirm": {"action": "accept", "content": {"decision": "Allow once"}}}
WRITE = {"scope": "app", "op": "file.write", "target": "made.txt", "input": {"content": "made"}}
FORWARDED: dict[str, dict[str, str]] = {
    "public name": {"host": PUBLIC},
    "public name and a proxy": {"host": PUBLIC, "x-forwarded-for": "203.0.113.9"},
    "x-forwarded-for": {"x-forwarded-for": "203.0.113.9"},
    "forwarded": {"forwarded": "for=203.0.113.9"},
    "via": {"via": "1.1 somewhere"},
    "x-real-ip": {"x-real-ip": "203.0.113.9"},
    "cloudflare": {"cf-connecting-ip": "203.0.113.9"},
    "a proxy that says it is local": {"x-forwarded-for": "127.0.0.1", "x-forwarded-host": "localhost"},
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("forwarded")
    scopes = [folder_scope(folder / "root", confirm="all")]
    with serving(folder, token=TOKEN, scopes=scopes, publicBaseUrl=f"https://{PUBLIC}") as running:
        yield running


def call(service: Service, headers: dict[str, str], **more: Any) -> dict[str, Any]:
    """One tools/call of 2026-07-28 by a client that has dialogs."""
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    params = {"name": "computer_operation", "arguments": WRITE, "_meta": meta, **more}
    given = {**modern_headers("tools/call", {"name": "computer_operation"}), **headers}
    link = service.http()
    try:
        status, body = link.send("POST", "/mcp", rpc(1, "tools/call", params), given)
    finally:
        link.close()
    assert status == 200, (status, body)
    return message_of(body)


def made(service: Service) -> Path:
    path = service.root / "made.txt"
    path.unlink(missing_ok=True)
    return path


def envelope(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer["result"]["content"][0]["text"])
    return found


def cli(service: Service, *arguments: str) -> str:
    done = command(service.home, *arguments)
    return done.stdout + done.stderr


def test_on_this_machine_the_dialog_of_an_allowed_client_answers(service: Service) -> None:
    path = made(service)
    asked = call(service, {})["result"]
    refused = envelope(call(service, {}, requestState=asked["requestState"], inputResponses=ALLOW))
    assert refused["error"]["code"] == "confirm_required" and not path.exists()
    cli(service, "approvals", "allow-client", "tests")
    asked = call(service, {})["result"]
    assert asked["resultType"] == "input_required", asked
    done = call(service, {}, requestState=asked["requestState"], inputResponses=ALLOW)
    assert envelope(done)["ok"] and path.read_text() == "made"


@pytest.mark.parametrize("way", FORWARDED)
def test_a_forwarded_owner_is_refused_instead_of_asked(service: Service, way: str) -> None:
    path = made(service)
    refused = envelope(call(service, FORWARDED[way]))
    assert (
        refused["error"]["code"] == "confirm_required"
        and "approvals allow" in refused["error"]["details"]["approveWith"]
    )
    assert not path.exists()


@pytest.mark.parametrize("way", ["public name", "x-forwarded-for"])
def test_a_forwarded_owner_cannot_answer_a_question_by_its_id(service: Service, way: str) -> None:
    """Neither its own nor one that a client on this machine was asked."""
    path = made(service)
    own = envelope(call(service, FORWARDED[way]))["error"]["details"]["approvalId"]
    local = call(service, {})["result"]["requestState"]
    for state in (own, local):
        answer = call(service, FORWARDED[way], requestState=state, inputResponses=ALLOW)
        assert "error" in answer or not envelope(answer)["ok"], answer
        assert not path.exists()


def test_a_yes_at_the_terminal_counts_for_the_forwarded_request_and_for_no_local_one(service: Service) -> None:
    path = made(service)
    forwarded = FORWARDED["public name"]
    asked = envelope(call(service, forwarded))["error"]["details"]["approvalId"]
    assert "Allowed file.write" in cli(service, "approvals", "allow", asked)
    assert call(service, {})["result"]["resultType"] == "input_required", "the other one still has to be asked"
    assert not path.exists()
    assert envelope(call(service, forwarded))["ok"] and path.read_text() == "made"


def test_a_yes_for_a_local_session_is_none_for_the_same_session_forwarded(service: Service) -> None:
    path = made(service)
    link = service.http()
    try:
        link.initialize()
        arguments = {"name": "computer_operation", "arguments": WRITE}
        refused = json.loads(link.legacy("tools/call", arguments)["result"]["content"][0]["text"])
        cli(service, "approvals", "allow", "--same", refused["error"]["details"]["approvalId"])
        headers = {**link.session_headers(), "x-forwarded-for": "203.0.113.9"}
        status, body = link.send("POST", "/mcp", rpc(7, "tools/call", arguments), headers)
        assert status != 200 or not json.loads(message_of(body)["result"]["content"][0]["text"])["ok"], body
        assert not path.exists()
        assert json.loads(link.legacy("tools/call", arguments)["result"]["content"][0]["text"])["ok"]
    finally:
        link.close()
    assert path.read_text() == "made"


@pytest.mark.parametrize("action", ["doctor", "client_setup"])
@pytest.mark.parametrize("way", ["x-forwarded-for", "via"])
def test_a_forwarded_owner_may_not_ask_what_only_the_owner_here_may(service: Service, way: str, action: str) -> None:
    link = service.http()
    try:
        assert json.loads(link.send("POST", "/api/v1/control", {"action": action})[1]).get("ok", True)
        told = json.loads(link.send("POST", "/api/v1/control", {"action": action}, FORWARDED[way])[1])
    finally:
        link.close()
    assert told["error"]["code"] == "permission_denied", told


def test_a_proxy_that_adds_no_header_is_known_by_its_version(service: Service) -> None:
    """nginx by default: HTTP/1.0, and the Host of the address it was given."""
    body = b'{"action": "doctor"}'
    answers = []
    for version in ("1.0", "1.1"):
        with socket.create_connection(("127.0.0.1", service.port), timeout=30) as link:
            head = (
                f"POST /api/v1/control HTTP/{version}\r\nHost: 127.0.0.1:{service.port}\r\nConnection: close\r\n"
                f"Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            link.sendall(head.encode() + body)
            with link.makefile("rb") as reading:
                answers.append(json.loads(reading.read().partition(b"\r\n\r\n")[2]))
    assert answers[0]["error"]["code"] == "permission_denied", answers[0]
    assert answers[1].get("ok", True), answers[1]


@pytest.mark.anyio
async def test_the_sdks_client_elsewhere_is_not_asked_in_its_dialog(service: Service) -> None:
    """Elicitation of the handshake era: the dialog is not even opened."""
    path, opened = made(service), list[str]()

    async def person(context: Any, params: Any) -> ElicitResult:
        opened.append(params.message)
        return ElicitResult(action="accept", content={"decision": "Allow once"})

    headers = {"Authorization": f"Bearer {TOKEN}", "X-Forwarded-For": "203.0.113.9"}
    with anyio.fail_after(60):
        async with httpx2.AsyncClient(headers=headers, timeout=240) as web:
            server = streamable_http_client(service.url, http_client=web)
            async with Client(server, mode="legacy", elicitation_callback=person) as client:
                result = await client.call_tool("computer_operation", WRITE)
    assert not json.loads(result.content[0].text)["ok"]  # type: ignore[union-attr]  # our replies begin with text
    assert opened == [] and not path.exists()


def test_a_client_on_the_network_is_remote_too(tmp_path: Path) -> None:
    """No proxy, no public name: only the address it comes from is another. 127.0.0.2 stands for one on the network."""
    scopes = [folder_scope(tmp_path / "root", confirm="all")]
    with serving(tmp_path, token=TOKEN, scopes=scopes, host="0.0.0.0") as service:
        meta = {**META, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
        params = {"name": "computer_operation", "arguments": WRITE, "_meta": meta}
        headers = {
            **modern_headers("tools/call", {"name": "computer_operation"}),
            "authorization": f"Bearer {TOKEN}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        }
        link = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30, source_address=("127.0.0.2", 0))
        link.request("POST", "/mcp", json.dumps(rpc(1, "tools/call", params)), headers)
        refused = envelope(message_of(link.getresponse().read()))
        link.close()
        assert refused["error"]["code"] == "confirm_required", refused
        assert not (service.root / "made.txt").exists()
