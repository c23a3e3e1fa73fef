"""Points of the sources about get_computer_info and the older capabilities, through the JSON API of a running service."""

import getpass
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.service import TOKEN, Http, serving

INCLUDE = "identity platform service tools scopes policy status operations exposure".split()


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Http]:
    with serving(tmp_path_factory.mktemp("info"), token=TOKEN, publicBaseUrl="https://linker.example") as service:
        http = service.http()
        yield http
        http.close()


def test_exposure_says_whether_a_tunnel_can_be_opened_with_what_and_what_is_in_the_way(http: Http) -> None:
    """Architecture, scope and permission model: loopback only, tunnel tools, readiness, blocking reasons and warnings."""
    exposure = http.control("get_computer_info", include=["exposure"])["exposure"]
    assert (exposure["loopbackOnly"], exposure["readyToExpose"], exposure["blockingReasons"]) == (False, True, [])
    assert "manual" in exposure["tunnelTools"] and isinstance(exposure["warnings"], list)


def test_each_part_of_the_include_list_answers_itself_alone(http: Http) -> None:
    """Contract: `include` picks among nine parts; another name, or another field, is refused."""
    parts: dict[str, Any] = {
        "identity": {"machineId", "machineName"}, "scopes": {"scopes", "computers"}, "operations": {"operations", "capabilities"},
    }  # fmt: skip
    for name in INCLUDE:
        answer = http.control("get_computer_info", include=[name])
        assert set(answer) <= parts.get(name, {name}) and answer, name
    for wrong in ({"include": ["everything"]}, {"includes": ["tools"]}, {"include": "tools"}):
        assert http.control("get_computer_info", **wrong)["error"]["code"] == "invalid_request"


def test_a_tool_has_path_version_need_and_remedy(http: Http) -> None:
    """Contract: `tools` says for each program available, path, version, how much it is needed, and the remedy."""
    tools = http.control("get_computer_info", include=["tools"])["tools"]
    assert {"rg", "git", "codex", "npm", "screenshot"} <= set(tools)
    for tool in tools.values():
        assert {"available", "path", "version", "need", "remedy"} <= set(tool)
        assert tool["need"] in ("required", "recommended", "optional") and (tool["available"] or tool["remedy"])


def test_unknown_fields_are_refused_at_every_level(http: Http) -> None:
    """Contract: unknown fields are refused with `invalid_request`; nothing was written."""
    envelope = {"scope": "app", "op": "file.write", "target": "made.txt", "input": {"content": "x"}}
    more: list[dict[str, Any]] = [
        {"extra": 1}, {"input": {"content": "x", "extra": 1}}, {"options": {"extra": 1}}, {"confirm": {"token": "x", "extra": 1}},
    ]  # fmt: skip
    for extra in more:
        answer = http.control("computer_operation", **{**envelope, **extra})
        assert answer["error"]["code"] == "invalid_request", extra
    assert http.control("get_operation_history", view="last", extra=1)["error"]["code"] == "invalid_request"
    stat = http.control("computer_operation", scope="app", op="file.stat", target="made.txt")
    assert stat["error"]["code"] == "not_found"


def test_an_event_has_every_field_of_the_contract(http: Http, tmp_path: Path) -> None:
    """Contract, history events."""
    http.control("computer_operation", scope="app", op="file.list", target=".")
    (event,) = http.control("get_operation_history", view="last", scope="app", limit=1)["events"]
    wanted = (
        "operationId startedAt durationMs scope op target capability decision ok errorCode effect principal session client "
        "boundary commandPreview approval summary"
    )
    assert set(wanted.split()) <= set(event)


def test_the_envelopes_have_exactly_the_fields_of_the_contract(http: Http) -> None:
    """Contract, envelope: success, success of a change, and failure."""
    head = {"ok", "operationId", "scope", "op", "startedAt", "durationMs"}
    read = http.control("computer_operation", scope="app", op="file.list", target=".")
    made = http.control("computer_operation", scope="app", op="file.mkdir", target="made")
    none = http.control("computer_operation", scope="app", op="file.read", target="none")
    assert set(read) == head | {"data", "warnings"} and set(made) == head | {"data", "warnings", "effect"}
    assert set(none) == head | {"error"} and set(none["error"]) == {"code", "message", "retryable", "details"}
    assert len(read["operationId"]) == 26 and made["effect"] == "confirmed"


def test_a_step_that_used_an_earlier_result_is_not_called_replayable(http: Http) -> None:
    """Point 000-191: a template is right for each operation; `$1.path` means nothing outside its batch."""
    steps = [{"op": "file.list", "target": "."}, {"op": "file.read", "target": "$1.nowhere"}]
    http.control("computer_operation", scope="app", op="batch.run", input={"operations": steps})
    found = http.control("get_operation_history", view="failed_replay", scope="app", query="op:file.read")
    (template,) = [one for one in found["templates"] if one["request"].get("target") in (None, "$1.nowhere")][:1]
    assert template["replayable"] is False and "target" in template["requiresInput"]


def test_health_without_a_credential_says_ok_and_nothing_more(http: Http) -> None:
    """Contract, JSON API: `GET /healthz`."""
    bare = Http(http.port)
    assert bare.send("GET", "/healthz") == (200, b'{"status":"ok"}')
    assert bare.send("POST", "/api/v1/control", {"action": "get_computer_info"})[0] == 401
    bare.close()
    for header in ("x-computer-linker-token", "x-localport-token"):
        given = Http(http.port)
        assert given.send("POST", "/api/v1/control", {"action": "get_computer_info"}, {header: TOKEN})[0] == 200
        given.close()


def test_the_older_capabilities_have_the_names_of_the_architecture(http: Http) -> None:
    """Architecture: toolReadiness separates three needs, operationSafety marks each operation with one of four words."""
    found = http.control("get_capabilities")
    assert set(found["toolReadiness"]) == {"required", "recommended", "optional"}
    safety = {one["operation"]: one["safety"] for one in found["operationSafety"]}
    wanted = {
        "file.read": "workspace-path-enforced", "history.last": "workspace-scoped-metadata",
        "command.run": "workspace-cwd-only", "batch.run": "mixed",
    }  # fmt: skip
    assert {name: safety[name] for name in wanted} == wanted


def test_policy_is_evaluated_in_the_order_of_the_specification(http: Http) -> None:
    """Product specification, policy model: scope, operation, capability, and only then what the request says."""
    asked: list[tuple[dict[str, Any], str]] = [
        ({"scope": "none", "op": "no.such", "options": {"wrong": 1}}, "unknown_scope"),
        ({"scope": "app", "op": "no.such", "options": {"wrong": 1}}, "unknown_operation"),
        ({"scope": "app", "op": "screen.capture", "options": {"wrong": 1}}, "permission_denied"),
        ({"scope": "app", "op": "file.read", "target": "../x", "options": {"wrong": 1}}, "invalid_request"),
        ({"scope": "app", "op": "file.read", "target": "../x"}, "path_out_of_scope"),
    ]
    assert [http.control("computer_operation", **call)["error"]["code"] for call, _ in asked] == [
        code for _, code in asked
    ]


def test_the_user_is_named_with_whether_elevated(http: Http) -> None:
    """Point 000-077."""
    user = http.control("get_computer_info", include=["platform"])["platform"]["user"]
    assert user["name"] == getpass.getuser() and user["elevated"] is (os.geteuid() == 0)


def test_readiness_workspaces_history_and_sessions_have_addresses_of_their_own(http: Http) -> None:
    """Point 001-052; and nothing of them without a credential."""
    bare = Http(http.port)
    for path, field in (
        ("doctor", "releaseReadiness"),
        ("workspaces", "workspaces"),
        ("history", "events"),
        ("sessions", "sessions"),
    ):
        status, body = http.send("GET", f"/api/v1/{path}")
        assert (status, field in json.loads(body)) == (200, True), path
        assert bare.send("GET", f"/api/v1/{path}")[0] == 401
    bare.close()
