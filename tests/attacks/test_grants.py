"""An OAuth client with little tries for more: other scopes, other computers, others' work, and a yes that it gives itself."""

import contextlib
import json
import sys
from collections.abc import Iterator
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from support.events import owners_history
from support.fleet import until
from support.oauth import Browser, tokens
from support.road import computer_scope, folder_scope
from support.service import META, TOKEN, Service, modern_headers, serving

ASKS: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
YES = {"confirm": {"action": "accept", "content": {"decision": "Allow once"}}}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("grants")
    scopes = [
        folder_scope(folder / "root"), folder_scope(folder / "private-p7", "private-p7"), computer_scope("screen"),
        folder_scope(folder / "asked-q8", "asked-q8", confirm="all"),
    ]  # fmt: skip
    for name in ("root", "private-p7", "asked-q8"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "a.txt").write_text(f"in {name}")
    with serving(folder, token=TOKEN, scopes=scopes) as running:
        yield running


@pytest.fixture(scope="module")
def narrow(service: Service) -> str:
    """The access token of a client that may read one folder."""
    return str(tokens(Browser(service.base), scope=["app"], group=["linker:read"])[1]["access_token"])


@pytest.fixture(scope="module")
def asking(service: Service) -> str:
    """The access token of a client in whose scope a person is asked."""
    return str(
        tokens(Browser(service.base), scope=["asked-q8"], group=["linker:read", "linker:write"])[1]["access_token"]
    )


def tool(service: Service, token: str, name: str, arguments: dict[str, Any], **params: Any) -> tuple[int, Any]:
    """The status, and the result of a tool call; the envelope is beneath `structuredContent`."""
    given = {"name": name, "arguments": arguments, "_meta": META | params.pop("meta", {}), **params}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": given}
    headers = {**modern_headers("tools/call", given), "authorization": f"Bearer {token}"}
    link = service.http()
    try:
        status, body = link.send("POST", "/mcp", message, headers)
    finally:
        link.close()
    return status, json.loads(body)


def envelope(service: Service, token: str, scope: str, op: str, target: Any = None, **more: Any) -> dict[str, Any]:
    arguments = {"scope": scope, "op": op, **({"target": target} if target is not None else {}), **more}
    status, answer = tool(service, token, "computer_operation", arguments)
    if status == 403:
        return {"ok": False, "error": {"code": "insufficient_scope"}}
    assert status == 200, answer
    found: dict[str, Any] = json.loads(answer["result"]["content"][0]["text"])
    return found


def test_a_client_from_elsewhere_does_not_say_yes_to_itself(service: Service, asking: str) -> None:
    """Neither through a dialog it says it can show, nor by answering a question that was never put to it."""
    keep = service.root.parent / "asked-q8" / "a.txt"
    delete = {"scope": "asked-q8", "op": "file.delete", "target": "a.txt"}
    for _ in range(2):
        _, answer = tool(service, asking, "computer_operation", delete, meta=ASKS)
        result = answer["result"]
        assert result.get("resultType") != "input_required"
        refused = json.loads(result["content"][0]["text"])
        assert refused["error"]["code"] == "confirm_required"
    state = refused["error"]["details"]["approvalId"]
    for meta in (ASKS, {}):
        _, answer = tool(
            service, asking, "computer_operation", delete, meta=meta, requestState=state, inputResponses=YES
        )
        assert "true" not in json.dumps(answer.get("result", {}).get("structuredContent", {}).get("ok", False))
        assert keep.exists()


def test_the_owners_client_answers_only_what_its_dialog_was_asked(service: Service) -> None:
    keep = service.root.parent / "asked-q8" / "a.txt"
    delete = {"scope": "asked-q8", "op": "file.delete", "target": "a.txt"}
    _, answer = tool(service, TOKEN, "computer_operation", delete)
    state = json.loads(answer["result"]["content"][0]["text"])["error"]["details"]["approvalId"]
    tool(service, TOKEN, "computer_operation", delete, requestState=state, inputResponses=YES)
    assert keep.exists()


@pytest.mark.anyio
async def test_nor_in_the_handshake_era(service: Service, asking: str) -> None:
    shown: list[str] = []

    async def person(context: Any, params: Any) -> ElicitResult:
        shown.append(params.message)
        return ElicitResult(action="accept", content={"decision": "Allow once"})

    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {asking}"}, timeout=240) as http:
        server = streamable_http_client(service.url, http_client=http)
        async with Client(server, mode="legacy", elicitation_callback=person) as client:
            given = {"scope": "asked-q8", "op": "file.delete", "target": "a.txt"}
            result = await client.call_tool("computer_operation", given)
    told = json.loads(result.content[0].text)  # type: ignore[union-attr]  # our replies begin with text
    assert told["error"]["code"] == "confirm_required" and shown == []
    assert (service.root.parent / "asked-q8" / "a.txt").exists()


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_call_that_reports_its_progress_ends_with_the_session_too(service: Service, mode: str) -> None:
    """Such a call runs in the SDK's own task, which the end of the request alone would not reach."""
    begun, ended = service.root / f"begun-{mode}", service.root / f"ended-{mode}"
    browser, before = Browser(service.base), len(_outcomes(service))
    client_id, issued = tokens(browser, scope=["app"], group=["linker:read", "linker:write", "linker:run"])
    script = f"open('{begun.name}','w').close();import time;time.sleep(4);open('{ended.name}','w').close()"
    given = {"scope": "app", "op": "command.run", "target": ".", "input": {"command": [sys.executable, "-c", script]}}

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        return None

    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {issued['access_token']}"}, timeout=240) as http:

        async def call() -> None:
            # What the client makes of a connection that ends is its own affair.
            with contextlib.suppress(Exception, ExceptionGroup):
                async with Client(streamable_http_client(service.url, http_client=http), mode=mode) as client:
                    await client.call_tool("computer_operation", given, progress_callback=progress)

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await until(begun.exists)
            form = {"token": issued["access_token"], "client_id": client_id}
            assert browser.send("POST", "/revoke", form)[0] == 200
            await until(lambda: len(_outcomes(service)) > before, seconds=20)
            group.cancel_scope.cancel()
    assert _outcomes(service)[0] == "aborted"
    assert not ended.exists()


def _outcomes(service: Service) -> list[str | None]:
    """How commands ended, the newest first, as the owner's history tells."""
    events = owners_history(service.home)
    return [one["errorCode"] for one in events if one["op"] == "command.run" and one["ok"] is not None]


@pytest.mark.parametrize(
    "scope",
    [
        "private-p7",
        "screen",
        "asked-q8",
        "laptop/app",
        "/app",
        "app/",
        "[all]/app",
        "app:fs:read",
        "App",
        " app",
        "*",
        "",
    ],
)
def test_no_other_scope_or_computer_is_there_for_it(service: Service, narrow: str, scope: str) -> None:
    for op, target in (("file.read", "a.txt"), ("history.last", None), ("artifact.list", None), ("batch.run", None)):
        refused = envelope(
            service, narrow, scope, op, target, **({"input": {"operations": []}} if op == "batch.run" else {})
        )
        assert refused["error"]["code"] in ("unknown_scope", "invalid_request"), refused


def test_a_batch_a_copy_and_a_question_reach_no_further(service: Service, narrow: str) -> None:
    inner = [
        {"scope": other, "op": "file.read", "target": "a.txt"} for other in ("private-p7", "laptop/app", "[all]/app")
    ]
    told = envelope(service, narrow, "app", "batch.run", input={"operations": inner}, options={"stopOnError": False})
    assert not told["ok"] and all(not one["ok"] for one in told["data"]["results"]), told
    assert "in private-p7" not in json.dumps(told)
    for other in ("private/app", "laptop/app", "app/private-p7"):
        copy = {"destination": "x.txt", "sourceScope": other}
        assert not envelope(service, narrow, "app", "file.copy", "a.txt", input=copy)["ok"]
    explained = envelope(service, narrow, "app", "computer.explain", input={"op": "file.write", "target": "a.txt"})
    assert explained["data"]["allowed"] is False


def test_it_learns_nothing_of_what_it_was_not_given(service: Service, narrow: str) -> None:
    """Neither names nor folders of other scopes, nor what others did there, by any way of asking."""
    for op, scope in (("file.read", "private-p7"), ("file.read", "asked-q8"), ("file.stat", "app")):
        owner = service.http()
        call = {"scope": scope, "op": op, "target": "a.txt"}
        assert owner.control("computer_operation", **call)["ok"]
        owner.close()
    parts = ["identity", "platform", "service", "tools", "scopes", "policy", "status", "operations", "exposure"]
    answers = [tool(service, narrow, "get_computer_info", {"include": [part]}) for part in parts]
    for view in ("last", "timeline", "sessions", "connections", "failed_replay", "debug_bundle", "verify"):
        answers.append(tool(service, narrow, "get_operation_history", {"view": view}))
        answers.append(tool(service, narrow, "get_operation_history", {"view": view, "query": "scope:private-p7"}))
        answers.append(tool(service, narrow, "get_operation_history", {"view": view, "scope": "private-p7"}))
        answers.append(tool(service, narrow, "get_operation_history", {"view": view, "scope": "[all]/private-p7"}))
        answers.append((200, envelope(service, narrow, "app", f"history.{view}")))
    for status, answer in answers:
        text = json.dumps(answer)
        told = text.replace("'private-p7'", "").replace("'[all]/private-p7'", "").replace("scope:private-p7", "")
        assert status == 200 and "private-p7" not in told and "asked-q8" not in told, text[:3000]
        assert TOKEN not in text, text[:3000]
