"""Views: pages that neither skip nor repeat, queries that find, and only the scopes one may see."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.audit.layout import segment_path
from computer_linker.audit.query import TERMS, Visible
from computer_linker.audit.store import AuditStore
from computer_linker.audit.views import answer
from computer_linker.errors import InvalidRequest
from computer_linker.model.history import VIEWS
from computer_linker.registry.catalog import needs_of
from support.events import event

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[AuditStore]:
    opened = AuditStore(tmp_path / "audit")
    yield opened
    await opened.aclose()


async def ask(store: AuditStore, view: str, query: str | None = None, **parts: Any) -> dict[str, Any]:
    return await answer(store, view=view, query=query, **{"visible": None, "needs_of": needs_of, **parts})


async def targets(store: AuditStore, query: str, **parts: Any) -> list[str]:
    return [told["target"] for told in (await ask(store, "timeline", query, **parts))["events"]]


@pytest.mark.parametrize("query", [None, "file", "op:file.read", "fil txt ok:true scope:app"])
@pytest.mark.parametrize("view", ["last", "timeline"])
async def test_pages_neither_skip_nor_repeat_while_events_arrive(
    store: AuditStore, view: str, query: str | None
) -> None:
    for number in range(25):
        await store.record(event(target=f"file{number}.txt"))
    seen: list[str] = []
    cursor = None
    while True:
        page = await ask(store, view, query, cursor=cursor, limit=4)
        seen += [told["target"] for told in page["events"]]
        await store.record(event(op="file.list", target="new"))
        cursor = page["nextCursor"]
        if cursor is None or len(seen) > 40:
            break
    old = [target for target in seen if target != "new"]
    expected = [f"file{number}.txt" for number in range(25)]
    assert old == (expected if view == "timeline" else expected[::-1])


async def test_an_outcome_joins_its_intent(store: AuditStore) -> None:
    made = event("file.write", ok=None, duration_ms=None)
    store.intent(made)
    await store.durable()
    [running] = (await ask(store, "last"))["events"]
    assert (running["outcome"], running["ok"]) == ("running", None)
    made.ok, made.effect, made.duration_ms = True, "confirmed", 2.0
    await store.outcome(made)
    [done] = (await ask(store, "last"))["events"]
    assert (done["outcome"], done["effect"], done["durationMs"], done["ok"]) == ("done", "confirmed", 2.0, True)


async def test_an_intent_whose_service_died_is_unknown(store: AuditStore, tmp_path: Path) -> None:
    store.intent(event("file.write", ok=None))
    await store.durable()
    after = AuditStore(tmp_path / "audit")
    told = await ask(after, "last")
    assert told["events"][0]["outcome"] == "unknown"
    assert "look at the target" in told["suggestions"][0]["advice"]
    await after.aclose()


async def test_a_refusal_at_the_door_suggests_nothing_about_an_operation(store: AuditStore) -> None:
    for op in ("", "peer.connect", "get_operation_history"):
        await store.record(event(op, scope="", ok=False, error_code="permission_denied"))
        told = await ask(store, "last")
        assert told["events"][0]["errorCode"] == "permission_denied"
        assert told["suggestions"] == []


async def test_words_and_terms_find_events(store: AuditStore) -> None:
    await store.record(event(target="src/dispatcher.py", started_at="2026-11-01T08:00:00.000Z"))
    await store.record(event("file.list", target="docs", client="codex", started_at="2026-11-02T08:00:00.000Z"))
    failed: dict[str, Any] = {"ok": False, "error_code": "not_found", "started_at": "2026-11-03T08:00:00.000Z"}
    await store.record(event(target="gone.txt", scope="other", **failed))
    assert await targets(store, "dispatch") == ["src/dispatcher.py"]
    assert await targets(store, "SRC disp") == ["src/dispatcher.py"]
    assert await targets(store, "op:file.list") == ["docs"]
    assert await targets(store, "op:file.*") == ["src/dispatcher.py", "docs", "gone.txt"]
    assert await targets(store, "ok:false") == ["gone.txt"]
    assert await targets(store, "client:codex") == ["docs"]
    assert await targets(store, "scope:other") == ["gone.txt"]
    assert await targets(store, "code:not_found txt") == ["gone.txt"]
    assert await targets(store, "since:2026-11-02 until:2026-11-03") == ["docs"]
    assert await targets(store, '"" ^^ ((') == []


@pytest.mark.parametrize(
    ("query", "finds"),
    [
        ("mod_12", ["src/mod_12.py"]), ("mod_1", ["src/mod_12.py"]), ('"mod_12.py"', ["src/mod_12.py"]),
        ("src/mod", ["src/mod_12.py"]), ("NEAR(a b)", []), ('"AND" OR', []), ("mod*", []), ("mod AND py", []),
        ("straße", ["Straße ü.txt"]), ("STRAßE", ["Straße ü.txt"]), ('"e ü.t"', ["Straße ü.txt"]), ("文書", ["文書/一.md"]),
        ("http://host/a", []), ("localhost:3000", []), ('a"b', []), ("'", []), ("--", []), ("\x00", []), ('"unclosed', []),
        ('"test:unit"', []), ("cafe\u0301", []),
    ],
)  # fmt: skip
async def test_any_text_is_a_query_and_finds_what_it_spells(store: AuditStore, query: str, finds: list[str]) -> None:
    for target in ("src/mod_12.py", "Straße ü.txt", "文書/一.md", "mod.rs"):
        await store.record(event(target=target))
    assert await targets(store, query) == finds


async def test_an_unknown_term_is_refused_with_the_known_ones(store: AuditStore) -> None:
    for query in ("colour:red", "test:unit", "a tool:x"):
        with pytest.raises(InvalidRequest) as refused:
            await ask(store, "last", query)
        assert refused.value.details["terms"] == list(TERMS) and "since" in refused.value.message


async def test_a_command_is_found_by_its_words(store: AuditStore) -> None:
    await store.record(event("command.run", ".", command_preview="npm test"))
    await store.record(event("command.run", "npm", command_preview="cargo test"))
    for query in ('"npm test"', "npm test op:command.run scope:app"):
        found = (await ask(store, "timeline", query))["events"]
        assert found[0]["commandPreview"] == "npm test"
    assert len((await ask(store, "timeline", '"npm test"'))["events"]) == 1


@pytest.mark.parametrize("query", ["^(a+)+$", 'a" OR 1=1 --', "NEAR(a b)", "'; DROP TABLE events", "\x00", "a*" * 400])
async def test_no_query_is_a_program(store: AuditStore, query: str) -> None:
    await store.record(event(target="aaaa.txt"))
    await ask(store, "timeline", query)
    assert len((await ask(store, "timeline"))["events"]) == 1


async def test_queries_and_cursors_out_of_shape_are_refused(store: AuditStore) -> None:
    for parts in ({"query": "ok:maybe"}, {"query": "since:yesterday"}, {"query": "a" * 2000}, {"cursor": "e1; DROP"}):
        with pytest.raises(InvalidRequest):
            await ask(store, "last", **parts)
    with pytest.raises(InvalidRequest):
        await ask(store, "no such view")


async def test_limits_are_clamped(store: AuditStore) -> None:
    for _ in range(3):
        await store.record(event())
    assert len((await ask(store, "timeline", limit=10**12))["events"]) == 3
    assert len((await ask(store, "timeline", limit=-5))["events"]) == 1


@pytest.mark.parametrize("view", VIEWS)
async def test_only_visible_scopes_are_told(store: AuditStore, view: str) -> None:
    await store.record(event(scope="app", target="mine.txt", ok=False, error_code="not_found"))
    await store.record(
        event(scope="other", target="hidden.txt", session="hidden-session", ok=False, error_code="timeout")
    )
    for query in (None, "hidden", "scope:other", "ok:false"):
        told = str(await ask(store, view, query, visible=Visible("local:tester", frozenset({"app"}))))
        assert "hidden" not in told.replace("hidden'", "")
    assert (await ask(store, view, visible=Visible("local:tester", frozenset())))["events"] == []


async def test_sessions_and_connections_are_grouped(store: AuditStore) -> None:
    await store.record(event(session="one"))
    await store.record(event(session="two", ok=False, error_code="not_found"))
    await store.record(event(session="two", op="file.list"))
    groups = (await ask(store, "sessions"))["sessions"]
    assert [(group["session"], group["events"], group["failed"]) for group in groups] == [("two", 2, 1), ("one", 1, 0)]
    [connection] = (await ask(store, "connections"))["connections"]
    assert connection["sessions"] == ["one", "two"]
    assert len((await ask(store, "sessions", limit=1))["sessions"]) == 1


async def test_processes_and_agent_sessions_are_groups_of_their_own(store: AuditStore) -> None:
    process, agent = f"proc_{'0' * 24}", f"codex_{'1' * 24}"
    await store.record(event("command.start", ".", session="one", summary={"processId": process}))
    started = event("codex.start", ".", session="one", ok=None)
    store.intent(started)
    started.ok, started.summary = True, {"sessionId": agent}
    await store.outcome(started)
    await store.record(event("command.read", process, session="two"))
    await store.record(event("codex.read", agent, session="two", ok=False, error_code="timeout"))
    told = await ask(store, "sessions")
    (of_process,), (of_agent,) = told["processes"], told["codexSessions"]
    assert (of_process["processId"], of_process["operations"]) == (process, ["command.read", "command.start"])
    assert (of_agent["sessionId"], of_agent["events"], of_agent["failed"]) == (agent, 2, 1)
    assert [group["scope"] for group in told["scopes"]] == ["app"]
    assert await targets(store, f"handle:{process}") == [".", process]


async def test_a_connection_is_a_client_with_its_tunnel_and_request_ids(store: AuditStore) -> None:
    """Clients that share a credential and an address are told apart by their names."""
    shared = {"connection": "http-tunnel-cloudflare-127.0.0.1", "principal": "owner-token", "session": "http-stateless"}
    for client, ray in (("one", "0123456789abcdef-FRA"), ("one", "0123456789abcdee-FRA"), ("two", "no id at all")):
        await store.record(event(client=client, request=ray, **shared))
    two, one = (await ask(store, "connections"))["connections"]
    assert (one["client"], one["tunnel"], one["events"]) == ("one", "cloudflare", 2)
    assert one["requests"] == ["0123456789abcdee-FRA", "0123456789abcdef-FRA"]
    assert (two["client"], two["requests"]) == ("two", [])


async def test_the_summary_counts(store: AuditStore) -> None:
    await store.record(event())
    await store.record(event(client="codex", ok=False, error_code="path_out_of_scope", decision="deny"))
    await store.record(event("file.list", ok=False, error_code="not_found"))
    told = (await ask(store, "summary"))["summary"]
    assert (told["events"], told["failed"], told["refused"], told["unfinished"]) == (3, 2, 1, 0)
    assert told["operations"][0] == {"name": "file.read", "events": 2, "failed": 1}
    assert {one["name"] for one in told["errors"]} == {"path_out_of_scope", "not_found"}


async def test_templates_ask_for_what_was_not_kept_and_never_replay_a_capture(store: AuditStore) -> None:
    failed: dict[str, Any] = {"ok": False, "error_code": "timeout"}
    await store.record(event("file.read", "notes.txt", **failed))
    await store.record(event("command.run", ".", **failed))
    await store.record(event("screen.capture", "primary", **failed))
    capture, command, read = (await ask(store, "failed_replay"))["templates"]
    assert read["replayable"] and read["request"] == {"scope": "app", "op": "file.read", "target": "notes.txt"}
    assert (command["replayable"], command["requiresInput"]) == (False, ["input"])
    assert not capture["replayable"]
    script = {"script": "test", "scriptArguments": 0}
    await store.record(event("package.run", ".", summary=script, **failed))
    await store.record(event("package.run", ".", summary={**script, "scriptArguments": 1}, **failed))
    await store.record(event("file.read", None, **failed))
    await store.record(event("file.read", "a.txt", scope="", **failed))
    nowhere, untargeted, argued, run, *_ = (await ask(store, "failed_replay"))["templates"]
    assert run["replayable"] and run["request"]["input"] == {"script": "test"}
    assert (argued["replayable"], argued["requiresInput"]) == (False, ["input"])
    assert (untargeted["replayable"], untargeted["requiresInput"]) == (False, ["target"])
    assert not nowhere["replayable"]


@pytest.mark.parametrize(
    ("op", "code", "advice"),
    [
        ("file.write", "conflict", "Read the file again"),
        ("desktop.click", "conflict", "Observe again"),
        ("browser.click", "conflict", "browser.snapshot"),
        ("command.run", "timeout", "command.start"),
        ("file.search", "timeout", "Ask for less"),
        ("window.focus", "not_found", "window.list"),
        ("package.run", "not_found", "package.list"),
    ],
)
async def test_advice_fits_the_operation(store: AuditStore, op: str, code: str, advice: str) -> None:
    await store.record(event(op, ok=False, error_code=code))
    (told,) = (await ask(store, "last"))["suggestions"]
    assert advice in told["advice"]


async def test_the_services_own_texts_and_clients_names_are_kept_as_they_are(store: AuditStore) -> None:
    """Point 000-146."""
    boundary = (
        "bubblewrap: files, network, processes; Codex's own sandbox is off because the outer one holds it; limits"
    )
    await store.record(event("codex.run", ".", boundary=boundary, client="Cursor; v1.2 (Linux; x86_64)"))
    (told,) = (await ask(store, "last"))["events"]
    assert (told["boundary"], told["client"]) == (boundary, "Cursor; v1.2 (Linux; x86_64)")


async def test_an_event_changed_on_disk_is_told_as_changed(store: AuditStore) -> None:
    await store.record(event(target="before.txt"))
    await ask(store, "last")
    path = segment_path(store.folder, 1)
    path.write_bytes(path.read_bytes().replace(b"before.txt", b"forged.txt"))
    [told] = (await ask(store, "last"))["events"]
    assert told["outcome"] == "changed" and told["target"] is None
    verified = await ask(store, "verify")
    assert (verified["valid"], verified["firstBad"], verified["operationId"]) == (False, 2, told["operationId"])


async def test_an_index_that_is_gone_or_rubbish_is_made_again(store: AuditStore) -> None:
    await store.record(event())
    await ask(store, "last")
    for rubbish in (None, b"not a database" * 1000):
        for name in ("index.db", "index.db-wal", "index.db-shm"):
            (store.folder / name).unlink(missing_ok=True)
        if rubbish:
            (store.folder / "index.db").write_bytes(rubbish)
        assert len((await ask(store, "last"))["events"]) == 1


async def test_a_flood_of_refusals_is_counted_and_what_ran_is_kept(store: AuditStore) -> None:
    for _ in range(20_000):
        await store.record(event("file.read", None, ok=False, error_code="permission_denied", decision="deny"))
    await store.record(event(target="real.txt"))
    assert segment_path(store.folder, 1).stat().st_size < 1_000_000
    assert await targets(store, "real") == ["real.txt"]
    await store.aclose()
    assert '"kind":"left_out"' in segment_path(store.folder, 1).read_text("ascii")
    store.__init__(store.folder)  # type: ignore[misc]  # the fixture closes it once more


async def test_a_page_is_in_the_order_of_starts(store: AuditStore) -> None:
    """Found: a long read stood above what began after it, because the journal has it when it ends."""
    await store.record(event("file.read", "second.txt", started_at="2026-11-18T10:00:02.000Z"))
    await store.record(event("command.read", None, started_at="2026-11-18T10:00:01.000Z"))
    await store.record(event("file.read", "third.txt", started_at="2026-11-18T10:00:03.000Z"))
    starts = [one["startedAt"][17:19] for one in (await ask(store, "timeline"))["events"]]
    assert starts == ["01", "02", "03"]
    assert [one["startedAt"][17:19] for one in (await ask(store, "last"))["events"]] == ["03", "02", "01"]
    first = await ask(store, "last", limit=2)
    rest = await ask(store, "last", limit=2, cursor=first["nextCursor"])
    numbers = [one["number"] for one in (*first["events"], *rest["events"])]
    assert len(set(numbers)) == 3, "no event is left out between pages"
