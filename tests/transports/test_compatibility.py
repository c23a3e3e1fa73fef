"""The older surface: workspaces, underscored operations and actions, on the same road and with the same refusals."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from computer_linker.errors import LinkError
from computer_linker.registry.catalog import OLDER
from computer_linker.registry.older_calls import translate
from computer_linker.registry.reference import whole_catalog
from support.road import folder_scope
from support.service import TOKEN, Service, serving

TOOLS = {
    "get_capabilities", "list_workspaces", "open_workspace", "workspace_operation", "read", "ls", "grep", "glob",
    "create_file",
}  # fmt: skip


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    place = tmp_path_factory.mktemp("older")
    scopes = [folder_scope(place / "root"), {**folder_scope(place / "root"), "id": "look", "capabilities": ["fs:read"]}]
    with serving(place, token=TOKEN, env={"LOCALPORT_MCP_TOOL_SURFACE": "compatibility"}, scopes=scopes) as running:
        (running.root / "notes.txt").write_text("one\ntwo\n")
        yield running


@pytest.fixture
def tool(service: Service) -> Iterator[Any]:
    http = service.http()

    def call(name: str, **arguments: Any) -> Any:
        result = http.legacy("tools/call", {"name": name, "arguments": arguments})["result"]
        return json.loads(result["content"][0]["text"]), result["isError"]

    call.http = http  # type: ignore[attr-defined]
    yield call
    http.close()


def test_the_older_tools_stand_beside_the_three(tool: Any) -> None:
    names = {listed["name"] for listed in tool.http.legacy("tools/list")["result"]["tools"]}
    assert names == TOOLS | {"get_computer_info", "computer_operation", "get_operation_history"}


def test_a_workspace_is_listed_opened_and_used(tool: Any, service: Service) -> None:
    listed = {workspace["id"]: workspace for workspace in tool("list_workspaces")[0]["workspaces"]}
    assert listed["look"]["permissions"] == {
        "read": True, "write": False, "shell": False, "codex": False, "screen": False,
    }  # fmt: skip
    assert "read" in listed["look"]["allowedOperations"] and "write" not in listed["look"]["allowedOperations"]
    assert tool("open_workspace", workspace="look")[0]["workspaceId"] == "look"
    assert tool("read", workspaceId="app", path="notes.txt", lineCount=1)[0]["content"] == "one\n"
    assert [entry["name"] for entry in tool("ls", workspaceId="app", path=".")[0]["entries"]] == ["notes.txt"]
    assert tool("grep", workspaceId="app", pattern="two")[0]["matches"][0]["line"] == 2
    assert tool("glob", workspaceId="app", pattern="*.txt")[0]["files"] == ["notes.txt"]
    made, failed = tool("create_file", workspaceId="app", path="new.txt", content="x")
    assert not failed and made["created"] is True and (service.root / "new.txt").read_text() == "x"
    (service.root / "new.txt").unlink()
    assert tool("get_capabilities")[0]["computerOperationRegistry"]


def test_flat_and_enveloped_requests_mean_the_same(tool: Any) -> None:
    flat = tool("workspace_operation", workspace="app", operation="read", path="notes.txt", maxBytes=3)
    envelope = tool("workspace_operation", workspace="app", op="read", target="notes.txt", options={"maxBytes": 3})
    assert flat == envelope and flat[0]["truncated"] is True


def test_an_older_edit_and_a_compare_and_write(tool: Any, service: Service) -> None:
    file = service.root / "edit.txt"
    file.write_text("old\n")
    seen = tool("read", workspaceId="app", path="edit.txt")[0]["sha256"]
    answer, failed = tool(
        "workspace_operation", workspace="app", operation="edit", path="edit.txt", oldText="old", newText="new"
    )
    assert not failed, answer
    assert file.read_text() == "new\n"
    answer, failed = tool(
        "workspace_operation", workspace="app", operation="write_if_unchanged", path="edit.txt", content="lost",
        expectedSha256=seen,
    )  # fmt: skip
    assert failed and answer["error"]["code"] == "conflict" and file.read_text() == "new\n"
    file.unlink()


def test_a_batch_of_older_operations_is_checked_one_by_one(tool: Any, service: Service) -> None:
    operations = [
        {"operation": "read", "path": "notes.txt"},
        {"operation": "write", "path": "not.txt", "content": "x"},
    ]
    answer, _ = tool("workspace_operation", workspace="look", operation="batch", operations=operations)
    assert [result["ok"] for result in answer["data"]["results"]] == [True, False]
    assert answer["data"]["results"][1]["error"]["code"] == "permission_denied"
    assert not (service.root / "not.txt").exists()


def test_explain_and_history_under_their_older_names(tool: Any) -> None:
    asked = {"operation": "explain_operation", "input": {"operation": "write", "path": "x", "content": "y"}}
    answer, _ = tool("workspace_operation", workspace="look", **asked)
    assert answer["allowed"] is False and answer["missing"] == ["fs:write"]
    answer, _ = tool("workspace_operation", workspace="app", operation="history_insight", view="timeline", limit=5)
    assert answer["view"] == "timeline"


REFUSED = [
    ({"workspace": "app", "operation": "read", "path": "../outside"}, "path_out_of_scope"),
    ({"workspace": "app", "operation": "read", "path": "/etc/passwd"}, "path_out_of_scope"),
    ({"workspace": "nobody", "operation": "read", "path": "notes.txt"}, "unknown_scope"),
    ({"workspace": "app", "operation": "sudo"}, "unknown_operation"),
    ({"workspace": "app", "operation": "read", "path": "notes.txt", "wrong": 1}, "invalid_request"),
    ({"workspace": "app", "workspaceId": "look", "operation": "read", "path": "notes.txt"}, "invalid_request"),
    ({"workspace": "app", "operation": "read", "op": "write", "path": "notes.txt"}, "invalid_request"),
    ({"operation": "read", "path": "notes.txt"}, "invalid_request"),
    ({"workspace": "look", "operation": "command", "command": ["touch", "ran.txt"]}, "permission_denied"),
    ({"workspace": ["app"], "operation": "read"}, "invalid_request"),
]


@pytest.mark.parametrize(("arguments", "code"), REFUSED, ids=lambda value: str(value)[:60])
def test_the_older_names_are_refused_as_the_new_ones_are(
    tool: Any, service: Service, arguments: dict[str, Any], code: str
) -> None:
    answer, failed = tool("workspace_operation", **arguments)
    assert failed and answer["error"]["code"] == code
    assert sorted(path.name for path in service.root.iterdir()) == ["notes.txt"]


def test_the_json_api_knows_the_older_actions(service: Service) -> None:
    """Points 001-010, 001-014, 001-026 and 001-032."""
    http = service.http()
    assert http.control("list_workspaces")["workspaces"][0]["id"] == "app"
    assert http.control("workspace_operation", workspace="app", operation="read", path="notes.txt")["size"] == 8
    assert http.control("operation", workspace="app", op="read", target="notes.txt")["size"] == 8
    assert http.control("read", workspace="app", path="notes.txt")["size"] == 8
    assert http.control("read", workspace="app", path="../x")["error"]["code"] == "path_out_of_scope"
    assert http.control("history", workspace="app", limit=1)["events"]
    assert http.control("history_insight", view="sessions")["view"] == "sessions"
    assert "file.read" in {op["name"] for op in http.control("operation_registry")["operations"]}
    assert "git_diff" in {op["name"] for op in http.control("workspace_operation_registry")["operations"]}
    assert http.control("operation_registry", contract="workspace")["contract"] == "workspace"
    assert http.control("get_capabilities")["toolReadiness"]
    assert "status" in http.control("doctor")
    setup = http.control("client_setup")
    assert setup["stdio"]["args"][-1] == "stdio" and TOKEN not in json.dumps(setup)
    assert http.control("client_setup", showToken=True)["error"]["code"] == "invalid_request"
    status, body = http.send("GET", "/api/v1/capabilities")
    assert status == 200 and json.loads(body)["workspaces"]
    full = json.loads(body)
    assert full["profile"]["machineId"] == "test-machine" and TOKEN not in body.decode()
    assert full["releaseReadiness"]["status"] and full["tunnelDiagnostics"]["providerContracts"]
    assert {"configDiagnostics", "securityFindings"} <= full.keys() and "cloudflared" in full["tools"]
    semantic = full["workspaces"][0]["capabilityPolicy"]["capabilities"]
    assert {"codex:readOnly", "codex:write", "network:false", "git:read"} <= set(semantic)
    for path, field in (
        ("doctor", "tools"),
        ("workspaces", "workspaces"),
        ("history", "events"),
        ("sessions", "events"),
    ):
        status, body = http.send("GET", f"/api/v1/{path}")
        assert status == 200 and field in json.loads(body), (path, body)
        assert http.send("POST", f"/api/v1/{path}", {})[0] == 405
    assert http.send("POST", "/api/v1/capabilities", {})[0] == 405
    http.close()
    http.token = None
    for path in ("capabilities", "doctor", "workspaces", "history", "sessions"):
        assert http.send("GET", f"/api/v1/{path}")[0] == 401
    assert http.send("POST", "/api/v1/control", {"action": "read", "workspace": "app", "path": "notes.txt"})[0] == 401
    header = {"x-localport-token": TOKEN}
    assert http.send("POST", "/api/v1/control", {"action": "list_workspaces"}, header)[0] == 200
    http.close()


def test_the_history_has_the_operation_under_its_present_name(tool: Any, service: Service) -> None:
    tool("read", workspaceId="app", path="notes.txt")
    events = tool("get_operation_history", view="last", scope="app", limit=1)[0]["events"]
    assert events[0]["op"] == "file.read"


def test_every_older_name_is_an_operation_of_now() -> None:
    catalog = whole_catalog()
    for name, older in OLDER.items():
        assert older.op in catalog.operations, name
        assert translate(catalog, name, {"operations": []} if name == "batch" else {"operation": "read"})


FIELDS = [
    "path",
    "target",
    "input",
    "options",
    "operations",
    "operation",
    "view",
    "oldText",
    "edits",
    "stopOnError",
    "x",
]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["read", "batch", "explain_operation"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(name=st.sampled_from([*OLDER, "file.read"]) | VALUES, fields=st.dictionaries(st.sampled_from(FIELDS), VALUES))
def test_whatever_is_sent_becomes_a_call_or_a_refusal(name: Any, fields: dict[str, Any]) -> None:
    try:
        call = translate(whole_catalog(), name, fields)
    except LinkError:
        return
    assert call["op"] in whole_catalog().by_name and call.keys() <= {"op", "target", "input", "options"}


def test_the_default_surface_has_three_tools(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        http = running.http()
        assert len(http.legacy("tools/list")["result"]["tools"]) == 3
        http.close()


def test_older_names_work_in_computer_operation_and_are_echoed(tool: Any, service: Service) -> None:
    """Points 000-119, 001-075, 001-029 and 000-063: older names as aliases, with `canonicalOp` beside the name that was asked."""
    answer, _ = tool("computer_operation", scope="app", op="read", target="notes.txt", options={"lineCount": 1})
    assert (answer["op"], answer["canonicalOp"], answer["data"]["content"]) == ("read", "file.read", "one\n")
    answer, _ = tool("computer_operation", scope="app", op="read", input={"path": "notes.txt"})
    assert answer["ok"] and answer["data"]["path"] == "notes.txt"
    answer, _ = tool("computer_operation", scope="app", op="process.list")
    assert (answer["op"], answer["canonicalOp"]) == ("process.list", "command.list")
    answer, _ = tool("computer_operation", scope="app", op="file.read", target="notes.txt")
    assert answer["op"] == "file.read" and "canonicalOp" not in answer
    answer, _ = tool("computer_operation", scope="app", op="repo_status", target=".")
    assert (answer["op"], answer["canonicalOp"]) == ("repo_status", "git.status")
    answer, failed = tool("computer_operation", scope="look", op="write", target="x.txt", input={"content": "x"})
    assert failed and answer["error"]["code"] == "permission_denied" and answer["canonicalOp"] == "file.write"
    assert not (service.root / "x.txt").exists()
    listed = [{"op": "read", "target": "notes.txt"}, {"op": "write", "target": "y.txt", "input": {"content": "y"}}]
    answer, _ = tool("computer_operation", scope="app", op="batch.run", input={"operations": listed})
    assert [result["canonicalOp"] for result in answer["data"]["results"]] == ["file.read", "file.write"]
    (service.root / "y.txt").unlink()


def test_the_older_options_of_a_search_are_accepted(tool: Any) -> None:
    """Point 001-075: `before`, `after` and `caseSensitive`."""
    options = {"before": 1, "caseSensitive": False}
    for op in ("search_text", "grep", "file.search"):
        answer, _ = tool("computer_operation", scope="app", op=op, target=".", input={"query": "TWO"}, options=options)
        assert [(match["line"], match["before"]) for match in answer["data"]["matches"]] == [(2, ["one"])], op
    both = {"before": 1, "contextBefore": 1}
    answer, _ = tool("computer_operation", scope="app", op="file.search", input={"query": "x"}, options=both)
    assert answer["error"]["code"] == "invalid_request"


def test_a_path_is_matched_to_the_deepest_workspace(tmp_path: Path) -> None:
    """Point 001-029: a path inside two configured folders means the deeper one; where two scopes share it, neither."""
    inner = tmp_path / "root" / "inner"
    inner.mkdir(parents=True)
    scopes = [folder_scope(tmp_path / "root"), folder_scope(inner, "inner")]
    with serving(
        tmp_path, token=TOKEN, env={"COMPUTER_LINKER_MCP_TOOL_SURFACE": "compatibility"}, scopes=scopes
    ) as running:
        http = running.http()

        def opened(path: Path | str) -> Any:
            call = {"name": "open_workspace", "arguments": {"path": str(path)}}
            return json.loads(http.legacy("tools/call", call)["result"]["content"][0]["text"])

        assert opened(inner / "deep" / "x")["workspaceId"] == "inner"
        assert opened(tmp_path / "root" / "other")["workspaceId"] == "app"
        for outside in (tmp_path, f"{inner}/../../..", "inner/deep"):
            assert opened(outside)["error"]["code"] == "unknown_scope", outside
        http.close()


def test_a_cursor_of_no_list_of_tools_is_refused(tool: Any) -> None:
    """Defect: `tools/list` took any cursor. There is one page, so every cursor is unknown: -32602."""
    refused = tool.http.legacy("tools/list", {"cursor": "anything"})
    assert refused["error"]["code"] == -32602 and "result" not in refused
    assert tool.http.legacy("tools/list", {})["result"]["tools"]
