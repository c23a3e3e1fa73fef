"""get_operation_history: whose events a caller is told."""

from pathlib import Path

import pytest

from computer_linker.model.principal import Principal
from computer_linker.service.introspection import ServiceIntrospection
from support.road import LOCAL, Road, folder_scope

pytestmark = pytest.mark.anyio


def granted(*grants: str) -> Principal:
    return Principal("oauth:client", "oauth", "session-2", "connection-2", "client", grants=frozenset(grants))


async def test_a_client_is_told_of_the_scopes_it_holds_history_for(tmp_path: Path) -> None:
    (tmp_path / "two").mkdir()
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root"), folder_scope(tmp_path / "two", "two")]) as road:
        await road.call("file.stat", "in-app.txt", principal=granted("app"))
        await road.call("file.stat", "in-two.txt", scope="two", principal=granted("two"))
        history = ServiceIntrospection(road.app).operation_history
        seen = (await history({"view": "timeline"}, granted("two:history:read", "app:fs:read"))).envelope
        assert {event["target"] for event in seen["events"]} == {"in-two.txt"}
        refused = await history({"view": "timeline", "scope": "app"}, granted("two", "app:fs:read"))
        assert refused.envelope["error"]["code"] == "permission_denied"
        nothing = await history({"view": "last"}, granted("app:fs:read"))
        assert nothing.envelope["error"]["code"] == "permission_denied"


async def test_a_bundle_over_the_tool_tells_the_visible_scopes_only(tmp_path: Path) -> None:
    (tmp_path / "two").mkdir()
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root"), folder_scope(tmp_path / "two", "two")]) as road:
        history = ServiceIntrospection(road.app).operation_history
        told = (await history({"view": "debug_bundle"}, granted("two"))).envelope
        assert [scope["id"] for scope in told["bundle"]["config"]["scopes"]] == ["two"]


async def test_a_request_that_cannot_be_answered_is_told_what_can(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        history = ServiceIntrospection(road.app).operation_history
        unknown = (await history({"view": "all"}, LOCAL)).envelope["error"]
        assert unknown["code"] == "invalid_request"
        assert "timeline" in unknown["details"]["views"]
        elsewhere = (await history({"view": "last", "scope": "laptop/app"}, LOCAL)).envelope["error"]
        assert elsewhere["code"] == "unknown_scope"
        assert "run `computer-linker history` there" in elsewhere["message"]
