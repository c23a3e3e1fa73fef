"""Points of the sources about the history, on a running service: over HTTP, over stdio and by the owner's commands."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.lines import stdio
from support.road import folder_scope
from support.service import META, TOKEN, Service, modern_headers, owner, rpc, serving

PUBLIC = "linker.example"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    base = tmp_path_factory.mktemp("history")
    (base / "root").mkdir()
    (base / "root" / "package.json").write_text('{"scripts": {"test": "true"}}')
    scopes = [folder_scope(base / "root", allowedCommands=["npm *", "python3 *"])]
    with serving(base, token=TOKEN, scopes=scopes, publicBaseUrl=f"https://{PUBLIC}") as running:
        http = running.http()
        for op, given in (
            ("command.run", {"command": ["python3", "-c", "print(1)"]}),
            ("command.run", {"command": "npm publish --dry-run"}),
            ("command.start", {"command": ["python3", "-m", "this"]}),
            ("package.run", {"script": "missing"}),
        ):
            http.control("computer_operation", scope="app", op=op, target=".", input=given)
        http.control(
            "computer_operation", scope="app", op="command.run", target=".", input={"command": ["shred", "-u", "x"]}
        )
        http.close()
        yield running


def asked(service: Service, **question: Any) -> Any:
    http = service.http()
    try:
        return http.control("get_operation_history", scope="app", **question)
    finally:
        http.close()


def test_a_command_is_found_by_its_words_over_http_and_on_the_terminal(service: Service) -> None:
    """Points 000-007, 000-052, 000-186, 001-113: `commandPreview` in the event, the query and the owner's table."""
    (event,) = asked(service, view="last", query='"python3 -m this"')["events"]
    assert (event["op"], event["commandPreview"]) == ("command.start", "python3 -m this")
    assert "python3 -m this" in owner(service, "history", "--query", '"python3 -m this"')


def test_a_refused_command_has_its_words_and_the_rule(service: Service) -> None:
    """Point 000-187."""
    (event,) = asked(service, view="last", query="shred")["events"]
    assert (event["commandPreview"], event["decision"], event["errorCode"]) == (
        "shred -u x",
        "deny",
        "permission_denied",
    )
    assert "allowedCommands" in json.dumps(event)


def test_a_started_process_has_the_words_that_were_given(service: Service) -> None:
    """Point 000-137: not `npm dev` for `npm run dev`, nor a count of arguments."""
    http = service.http()
    given = {"command": ["npm", "run", "dev", "--", "--port", "3000"]}
    started = http.control("computer_operation", scope="app", op="command.start", target=".", input=given)
    http.close()
    assert started["data"]["commandPreview"] == "npm run dev -- --port 3000"


def test_every_event_and_view_has_the_machine(service: Service) -> None:
    """Point 000-185."""
    for view in ("last", "timeline", "summary", "sessions", "connections", "failed_replay", "debug_bundle"):
        found = asked(service, view=view)
        assert {found["machineId"], *(event["machineId"] for event in found["events"])} == {"test-machine"}, view
    exported = [json.loads(line) for line in owner(service, "history", "export").splitlines()]
    assert exported and {event["machineId"] for event in exported} == {"test-machine"}


def test_a_connection_is_a_client_with_its_request_ids(service: Service) -> None:
    """Points 000-190 and 000-193: two clients with one credential at one address are two, and a proxy's request id is kept."""
    for agent, ray in (("one", "0123456789abcdef-FRA"), ("two", "fedcba9876543210-FRA")):
        meta = {**META, "io.modelcontextprotocol/clientInfo": {"name": agent, "version": "1"}}
        params = {"name": "computer_operation", "arguments": {"scope": "app", "op": "file.list"}, "_meta": meta}
        http = service.http()
        headers = {**modern_headers("tools/call", params), "host": PUBLIC, "cf-ray": ray}
        status, body = http.send("POST", "/mcp", rpc(1, "tools/call", params), headers)
        http.close()
        assert status == 200, body
    found = json.loads(owner(service, "history", "--view", "connections", "--json"))["connections"]
    by_request = {request: one["connection"] for one in found for request in one["requests"]}
    assert {"0123456789abcdef-FRA", "fedcba9876543210-FRA"} <= by_request.keys()
    assert {"one/1", "two/1"} <= {one["client"] for one in found}
    with stdio(service.home) as lines:
        lines.tool("computer_operation", scope="app", op="file.list")
    grouped = json.loads(owner(service, "history", "--view", "sessions", "--json"))
    assert len({one["session"] for one in grouped["sessions"]}) >= 2 and grouped["processes"]


def test_what_can_be_sent_again_is_said_for_each(service: Service) -> None:
    """Point 000-191: a package's script can, a command without its words cannot."""
    templates = {one["request"]["op"]: one for one in asked(service, view="failed_replay")["templates"]}
    assert templates["package.run"]["replayable"] and templates["package.run"]["request"]["input"] == {
        "script": "missing"
    }
    assert (templates["command.run"]["replayable"], templates["command.run"]["requiresInput"]) == (False, ["input"])


def test_the_summary_is_a_view(service: Service) -> None:
    """Point 001-061."""
    counted = asked(service, view="summary")["summary"]
    assert counted["refused"] >= 1 and "command.run" in {one["name"] for one in counted["operations"]}


@pytest.mark.parametrize(
    "query", ["mod_12", "(", "a AND", "*", "NEAR(", "a:b:c", "-x", "o'neil", "{x}", "\x00", "ü", '"npm', '"', 'npm"']
)
def test_any_text_is_a_query(service: Service, query: str) -> None:
    """Mission gap "query"."""
    assert "events" in asked(service, view="last", query=query)


def test_settings_and_tokens_are_events_of_the_owner(service: Service, tmp_path: Path) -> None:
    """Point 001-112: what the owner does is in the history."""
    (tmp_path / "more").mkdir()
    owner(service, "scope", "add", str(tmp_path / "more"), "--read-only")
    owner(service, "scope", "edit", "more", "--policy", "confirm=all")
    owner(service, "config", "set", "machineName", "desk")
    found = json.loads(owner(service, "history", "--json", "--limit", "200"))["events"]
    assert {"scope.add", "scope.edit", "config.set", "service.start"} <= {event["op"] for event in found}
    assert all(
        event["principal"].startswith("cli:") for event in found if event["op"].startswith(("scope.", "config."))
    )
