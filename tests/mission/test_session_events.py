"""Architecture, audit log: events cover MCP sessions. Each session of a client begins with an event that names it."""

import json
from pathlib import Path
from typing import Any

import pytest

from computer_linker.service.introspection import ServiceIntrospection
from computer_linker.transports.mcp.fast_path import Negotiated
from computer_linker.transports.mcp.session_note import SessionNote
from computer_linker.transports.mcp.tools import Tools
from support.events import owners_history
from support.lines import stdio
from support.road import LOCAL, Road
from support.service import LEGACY, TOKEN, owner, serving


def test_opening_a_session_is_an_event_on_every_transport_that_has_sessions(tmp_path: Path) -> None:
    """Points 001-112 and "MCP sessions": over stdio of both eras and over HTTP, once each; a request without a session has none."""
    with serving(tmp_path, token=TOKEN) as service:
        with stdio(service.home) as lines:
            lines.tool("get_computer_info")
            lines.tool("get_computer_info")
        with stdio(service.home, handshake=False) as lines:
            lines.modern = True
            lines.tool("get_computer_info")
        http = service.http()
        http.initialize()
        assert http.legacy("tools/list")["result"]["tools"]
        assert http.modern("tools/list")["result"]["tools"]
        http.close()
        found = json.loads(owner(service, "history", "--query", "op:session.open", "--json"))
        text = owner(service, "history", "--query", "op:session.open")
    events: list[dict[str, Any]] = found["events"]
    assert [event["summary"]["protocol"] for event in events] == ["2025-11-25", "2026-07-28", "2025-11-25"]
    assert events[0]["principal"] == "owner" and len({event["session"] for event in events}) == 3
    assert all(event["client"].startswith("tests") and event["scope"] == "" and event["ok"] for event in events)
    assert text.count("connected") == 3


def test_a_session_that_the_history_groups_begins_with_its_opening(tmp_path: Path) -> None:
    """Point 000-190: the group of a session has its opening, and the names of operations are whole."""
    with serving(tmp_path, token=TOKEN) as service:
        http = service.http()
        http.initialize()
        for op in ("file.list", "no,such"):
            arguments = {"scope": "app", "op": op}
            http.legacy("tools/call", {"name": "computer_operation", "arguments": arguments})
        http.close()
        sessions = json.loads(owner(service, "history", "--view", "sessions", "--json"))["sessions"]
    (group,) = [one for one in sessions if "session.open" in one["operations"]]
    assert group["events"] == 3 and len(group["operations"]) == 3
    masked = [name for name in group["operations"] if name.startswith("[")]
    assert len(masked) == 1 and masked[0].endswith("]") and ", " in masked[0]


@pytest.mark.anyio
async def test_an_opening_that_is_being_recorded_is_not_lost_at_shutdown(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        tools = Tools(road.app.dispatcher, ServiceIntrospection(road.app))
        SessionNote(tools, lambda: LOCAL).note(Negotiated(era="handshake", version=LEGACY))
    assert [event["op"] for event in owners_history(road.home)] == ["session.open"]
