"""One talk over every way in: each answer is the same but for ids and times, and each leaves the same history."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from support.service import Service, serving
from surfaces.ways import WAYS, Call

OPERATIONS: list[dict[str, Any]] = [
    {"scope": "app", "op": "file.write", "target": "notes.txt", "input": {"content": "one\ntwo\n"}},
    {"scope": "app", "op": "file.read", "target": "notes.txt"},
    {"scope": "app", "op": "file.read", "target": "notes.txt", "options": {"startLine": 2, "lineCount": 1}},
    {"scope": "app", "op": "file.stat", "target": "absent.txt"},
    {"scope": "app", "op": "file.read", "target": "../outside.txt"},
    {"scope": "app", "op": "file.read", "target": ".env"},
    {"scope": "nowhere", "op": "file.read", "target": "notes.txt"},
    {"scope": "watching", "op": "file.write", "target": "notes.txt", "input": {"content": "no"}},
    {"scope": "app", "op": "file.read", "target": "notes.txt", "options": {"maxBytes": -1}},
    {"scope": "app", "op": "file.mkdir", "target": "folder"},
    {"scope": "app", "op": "file.list", "target": "."},
]
TOOLS: list[tuple[str, dict[str, Any]]] = [
    ("get_computer_info", {"include": ["identity", "platform", "scopes", "policy"]}),
    ("get_computer_info", {"include": ["no such part"]}),
    ("computer_operation", {"scope": "app", "op": "no.such"}),
    ("computer_operation", {"scope": "app", "op": "file.read", "target": "notes.txt", "surplus": 1}),
    ("computer_operation", {"scope": 7, "op": "file.read"}),
    ("computer_operation", {}),
    ("get_operation_history", {"view": "last", "limit": 0}),
    ("get_operation_history", {"view": "no such view"}),
    ("get_operation_history", {"view": "last", "scope": "nowhere"}),
]
VARYING = {"operationId", "startedAt", "durationMs", "modifiedAt"}
TOLD = ("scope", "op", "target", "capability", "decision", "ok", "errorCode", "effect", "outcome")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("alike")
    root = folder / "root"
    scopes = [
        {
            "id": "app",
            "type": "folder",
            "roots": [str(root)],
            "capabilities": ["fs:read", "fs:write", "history:read", "history:all"],
        },
        {"id": "watching", "type": "folder", "roots": [str(root)], "capabilities": ["fs:read"]},
    ]
    with serving(folder, scopes=scopes) as running:
        yield running


@pytest.fixture(scope="module")
def expected(service: Service) -> dict[str, Any]:
    """The talk over the plainest way, by which the others are judged."""
    with WAYS["socket"](service) as call:
        answers = operations_over(call, service)
        return {"operations": steady(answers), "history": history(call, answers), "tools": tools_over(call)}


def operations_over(call: Call, service: Service) -> list[dict[str, Any]]:
    for entry in service.root.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    (service.root / ".env").write_text("SECRET=1")
    return [call("computer_operation", arguments) for arguments in OPERATIONS]


def tools_over(call: Call) -> list[Any]:
    return [steady(call(tool, arguments)) for tool, arguments in TOOLS]


def history(call: Call, answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the history tells of just these answers."""
    ids = {answer["operationId"] for answer in answers}
    events = call("get_operation_history", {"view": "last", "limit": 50})["events"]
    return [{name: event.get(name) for name in TOLD} for event in events if event["operationId"] in ids]


def steady(value: Any) -> Any:
    """A copy without what differs from one moment to the next."""
    if isinstance(value, dict):
        return {name: steady(item) for name, item in value.items() if name not in VARYING}
    return [steady(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("way", WAYS)
def test_operations_answer_alike_and_are_told_alike(way: str, service: Service, expected: dict[str, Any]) -> None:
    with WAYS[way](service) as call:
        answers = operations_over(call, service)
    assert steady(answers) == expected["operations"]
    assert not (service.root.parent / "outside.txt").exists()
    assert (service.root / "notes.txt").read_text() == "one\ntwo\n"
    with WAYS["socket"](service) as look:
        assert history(look, answers) == expected["history"]


@pytest.mark.parametrize("way", [way for way in WAYS if way != "command-line"])
def test_tools_answer_alike(way: str, service: Service, expected: dict[str, Any]) -> None:
    with WAYS[way](service) as call:
        assert tools_over(call) == expected["tools"]


def test_the_talk_says_what_it_should(expected: dict[str, Any]) -> None:
    assert {event["op"] for event in expected["history"]} >= {"file.write", "file.read", "file.mkdir", "file.list"}
    outcomes = [answer.get("error", {}).get("code", "ok") for answer in expected["operations"]]
    assert outcomes == [
        "ok", "ok", "ok", "not_found", "path_out_of_scope", "permission_denied", "unknown_scope", "permission_denied",
        "invalid_request", "ok", "ok",
    ]  # fmt: skip
    codes = [answer.get("error", {}).get("code", "ok") for answer in expected["tools"]]
    assert codes == [
        "ok", "invalid_request", "unknown_operation", "invalid_request", "invalid_request", "invalid_request",
        "invalid_request", "invalid_request", "unknown_scope",
    ]  # fmt: skip
