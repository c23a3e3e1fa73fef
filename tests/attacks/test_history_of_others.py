"""The history of others: no view, query, count, group, number or cursor tells a client what another principal did."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from computer_linker.audit.layout import segment_path
from computer_linker.model.history import VIEWS
from computer_linker.model.principal import Principal
from computer_linker.service.introspection import ServiceIntrospection
from support.road import LOCAL, OWNER, Road, folder_scope

pytestmark = pytest.mark.anyio

OAUTH = Principal("oauth:client", "oauth", "session-2", "connection-2", "chat", grants=frozenset({"app"}))
QUERIES = (None, "hidden", "ok:false", "principal:cli:tester", "client:computer-linker", "session:cli-1", "op:file.*")
COUNTED = ("records", "beginsAt", "kept", "firstBad", "operationId")


async def ask(road: Road, view: str, who: Principal, way: str, query: str | None = None, **more: Any) -> dict[str, Any]:
    """The same question over the operation and over the tool."""
    if way == "operation":
        parts = {} if view == "verify" else {"input": {"query": query} if query else {}, "options": more}
        return await road.data(f"history.{view}", principal=who, **parts)
    asked = {"view": view, "scope": "app", **({"query": query} if query else {}), **more}
    reply = await ServiceIntrospection(road.app).operation_history(asked, who)
    assert "error" not in reply.envelope, reply.envelope
    answer: dict[str, Any] = json.loads(json.dumps(reply.envelope))
    return answer


async def busy(road: Road, who: Principal, times: int = 3) -> None:
    for number in range(times):
        await road.call("file.write", f"hidden-{number}.txt", input={"content": "x"}, principal=who)
        await road.call("file.stat", f"hidden-gone-{number}", principal=who)


@pytest.mark.parametrize("way", ["operation", "tool"])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("who", [LOCAL, OAUTH], ids=["local", "oauth"])
async def test_no_view_tells_what_others_did(road: Road, view: str, way: str, who: Principal) -> None:
    others = [
        OWNER,
        OAUTH if who is LOCAL else LOCAL,
        replace(LOCAL, id="local:other", session="session-3", connection="connection-3"),
    ]
    await road.call("file.stat", "mine.txt", principal=who)
    for other in others:
        await busy(road, other)
    for query in QUERIES:
        told = json.dumps(await ask(road, view, who, way, query))
        for other in others:
            for trace in ("hidden", other.id, other.session, other.connection):
                assert trace not in told, (query, trace, told)


@pytest.mark.parametrize("way", ["operation", "tool"])
@pytest.mark.parametrize("view", VIEWS)
async def test_what_others_do_changes_nothing_in_the_answer(tmp_path: Path, view: str, way: str) -> None:
    """The same acts of a caller are answered alike on a busy service and on a quiet one, up to times and ids."""

    async def acts(place: Path, others: int) -> dict[str, Any]:
        place.mkdir()
        async with Road.open(place) as road:
            for number in range(3):
                await busy(road, OWNER, others)
                await road.call("file.stat", f"mine-{number}.txt", principal=OAUTH)
            more: dict[str, Any] = {} if view == "verify" else {"limit": 2}
            return await ask(road, view, OAUTH, way, **more)
        raise AssertionError("the road raises")

    quiet, loud = await acts(tmp_path / "quiet", 0), await acts(tmp_path / "loud", 5)
    assert shape(quiet) == shape(loud)


def shape(told: Any) -> Any:
    """An answer without what differs from run to run: times, ids, and the sealed cursor's text (not its length)."""
    if isinstance(told, dict):
        changing = ("startedAt", "durationMs", "operationId", "oldest", "newest", "firstAt", "lastAt", "request")
        kept = {name: shape(value) for name, value in told.items() if name not in changing}
        return kept | ({"nextCursor": len(told["nextCursor"])} if told.get("nextCursor") else {})
    return [shape(one) for one in told] if isinstance(told, list) else told


@pytest.mark.parametrize("way", ["operation", "tool"])
async def test_pages_go_through_the_callers_own_events_and_no_cursor_is_of_use_to_another(road: Road, way: str) -> None:
    for number in range(5):
        await busy(road, OWNER)
        await road.call("file.stat", f"mine-{number}.txt", principal=OAUTH)
    seen, cursor, cursors = [], None, []
    for _ in range(10):
        more: dict[str, Any] = {"cursor": cursor} if cursor else {}
        page = await ask(road, "timeline", OAUTH, way, "op:file.stat", limit=2, **more)
        seen += [event["target"] for event in page["events"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
        cursors.append(cursor)
    assert seen == [f"mine-{number}.txt" for number in range(5)]
    assert len(cursors) == 2
    for forged in (cursors[0], "e1", "e0", cursors[0][:-1] + "0", "s" + "0" * 48, "s", ""):
        code = await road.code("history.timeline", options={"cursor": forged}, principal=LOCAL)
        assert code == "invalid_request", forged


async def test_history_all_shows_everybody_in_that_scope_and_in_no_other(tmp_path: Path) -> None:
    (tmp_path / "two").mkdir()
    scopes = [folder_scope(tmp_path / "root"), folder_scope(tmp_path / "two", "two")]
    scopes[0]["capabilities"] = [*scopes[0]["capabilities"], "history:all"]
    async with Road.open(tmp_path, scopes) as road:
        for scope in ("app", "two"):
            await road.call("file.stat", f"{scope}-of-another.txt", scope=scope, principal=OWNER)
            await road.call("file.stat", f"{scope}-mine.txt", scope=scope, principal=LOCAL)
        history = ServiceIntrospection(road.app).operation_history

        async def targets(who: Principal) -> list[str]:
            told = (await history({"view": "timeline"}, who)).envelope["events"]
            return [event["target"] for event in told if event["op"] == "file.stat"]

        assert await targets(LOCAL) == ["app-of-another.txt", "app-mine.txt", "two-mine.txt"]
        assert await targets(OWNER) == ["app-of-another.txt", "app-mine.txt", "two-of-another.txt", "two-mine.txt"]
        # A client that was given only history:read sees its own, whatever the scope allows.
        given = replace(OAUTH, grants=frozenset({"app:history:read", "app:fs:read", "two:history:read"}))
        assert await targets(given) == []
        assert await targets(replace(given, grants=given.grants | {"app:history:all"})) == [  # type: ignore[operator]
            "app-of-another.txt",
            "app-mine.txt",
        ]
        assert [one["target"] for one in (await ask(road, "timeline", given, "operation"))["events"]] == []


async def test_all_without_read_opens_nothing(tmp_path: Path) -> None:
    scope = folder_scope(tmp_path / "root") | {"capabilities": ["fs:read", "history:all"]}
    async with Road.open(tmp_path, [scope]) as road:
        assert await road.code("history.last") == "permission_denied"


@pytest.mark.parametrize("way", ["operation", "tool"])
async def test_a_client_learns_that_the_history_was_changed_but_not_where(road: Road, way: str) -> None:
    await busy(road, OWNER)
    assert await ask(road, "verify", LOCAL, way) | {"warnings": []} == {
        "view": "verify", "machineId": "test-machine", "events": [], "nextCursor": None, "valid": True, "problem": None, "warnings": [],
        **dict.fromkeys(COUNTED),
    }  # fmt: skip
    path = segment_path(road.home / "audit", 1)
    path.write_bytes(path.read_bytes().replace(b"hidden-1.txt", b"hidden-9.txt", 1))
    told = await ask(road, "verify", LOCAL, way)
    assert not told["valid"] and "hidden" not in str(told)
    assert [told[name] for name in COUNTED] == [None] * len(COUNTED)
    for view in ("last", "timeline"):
        warned = (await ask(road, view, LOCAL, way)).get("warnings", [])
        assert not any(char.isdigit() for char in str(warned)), warned
    found = await ask(road, "verify", OWNER, way)
    assert found["firstBad"] and found["operationId"]
