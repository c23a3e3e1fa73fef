"""What a client is offered: an operation that the policy of a scope rules out is not listed for it."""

import json
from pathlib import Path
from typing import Any

import pytest

from computer_linker.service.introspection import ServiceIntrospection
from computer_linker.transports.mcp.profiles import profile_of
from computer_linker.transports.mcp.tools import Tools
from support.road import LOCAL, Road, folder_scope

pytestmark = pytest.mark.anyio


async def info(road: Road, **request: Any) -> dict[str, Any]:
    return (await ServiceIntrospection(road.app).computer_info(request, LOCAL)).envelope


@pytest.mark.parametrize("elevation", [False, True])
async def test_elevation_is_offered_only_where_the_owner_switched_it_on(tmp_path: Path, elevation: bool) -> None:
    """Found: every scope with commands listed `command.elevate`, and each call of it was refused."""
    (tmp_path / "other").mkdir()
    scopes = [folder_scope(tmp_path / "root", elevation=elevation), folder_scope(tmp_path / "other", "other")]
    async with Road.open(tmp_path, scopes) as road:
        brief, whole = await info(road), await info(road, include=["scopes", "operations"])
        tools = Tools(road.app.dispatcher, ServiceIntrospection(road.app), "expanded")
        listed = {tool["name"] for tool in json.loads(tools.listing(profile_of(None)))}
        refused = await road.call("command.elevate", input={"command": ["true"]}, scope="other")
    for answer in (brief, whole):
        offered = {scope["id"]: "command.elevate" in scope["allowedOperations"] for scope in answer["scopes"]}
        assert offered == {"app": elevation, "other": False}
        assert all("command.run" in scope["allowedOperations"] for scope in answer["scopes"])
    assert any(line.startswith("command.elevate") for line in brief["signatures"]["command"]) is elevation
    assert ("command.elevate" in {op["name"] for op in whole["operations"]}) is elevation
    assert ("command_elevate" in listed) is elevation and "command_run" in listed
    assert refused["error"]["code"] == "permission_denied", refused


async def test_the_history_without_a_view_is_the_newest_events(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        await road.call("file.read", "one.txt")
        await road.call("file.list", ".")
        answer = (await ServiceIntrospection(road.app).operation_history({}, LOCAL)).envelope
    assert answer["view"] == "last" and [event["op"] for event in answer["events"]] == ["file.list", "file.read"]
