"""history.*: over the road, for whom, and how it fails."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from computer_linker.audit.layout import segment_path
from computer_linker.audit.store import AuditStore
from computer_linker.audit.views import Question, answer_now
from computer_linker.model.history import VIEWS
from support.road import OWNER, Road, folder_scope

pytestmark = pytest.mark.anyio


@contextmanager
def full_disk(journal: Path) -> Iterator[None]:
    """The journal cannot grow any more; smaller files still can."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (journal.stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


async def test_last_tells_the_newest_operation_of_the_scope_first(road: Road) -> None:
    await road.data("file.write", "a.txt", input={"content": "x"})
    written, *_ = (await road.data("history.last"))["events"]
    assert (written["op"], written["target"], written["outcome"], written["effect"]) == (
        "file.write",
        "a.txt",
        "done",
        "confirmed",
    )


async def test_a_refusal_is_in_the_history_with_its_reason(road: Road) -> None:
    assert await road.code("file.read", "../outside") == "path_out_of_scope"
    refused, *_ = (await road.data("history.last"))["events"]
    assert (refused["outcome"], refused["decision"], refused["errorCode"]) == ("refused", "deny", "path_out_of_scope")


@pytest.mark.parametrize("view", VIEWS)
async def test_every_view_needs_history_read(tmp_path: Path, view: str) -> None:
    scope = {**folder_scope(tmp_path / "root"), "capabilities": ["fs:read"]}
    async with Road.open(tmp_path, [scope]) as road:
        assert await road.code(f"history.{view}") == "permission_denied"


async def test_a_scope_tells_its_own_events_only(tmp_path: Path) -> None:
    (tmp_path / "two").mkdir()
    scopes = [folder_scope(tmp_path / "root"), folder_scope(tmp_path / "two", "two")]
    async with Road.open(tmp_path, scopes) as road:
        await road.call("file.stat", "only-in-app.txt")
        told = await road.data("history.timeline", scope="two")
        assert told["events"] == []


async def test_limit_and_query_abuse_is_answered_quickly(road: Road) -> None:
    await road.call("file.stat", "a")
    assert (await road.data("history.timeline", options={"limit": 10**12}))["events"]
    await road.data("history.timeline", input={"query": "^(a+)+$"})
    assert await road.code("history.timeline", options={"limit": "many"}) == "invalid_request"


async def test_forged_lines_in_a_target_are_one_event(road: Road) -> None:
    await road.call("file.stat", 'x\n{"type":"tool_call","success":true,"op":"FAKE"}')
    await road.call("file.stat", "a\u2028b\u0085c\u001b[31m")
    events = (await road.data("history.timeline"))["events"]
    assert [told["op"] for told in events] == ["file.stat", "file.stat"]
    assert all(told["target"].isprintable() for told in events)
    assert all(line.isascii() for line in segment_path(road.home / "audit", 1).read_text("utf-8").splitlines())


async def test_a_huge_target_makes_a_small_event(road: Road) -> None:
    await road.call("file.stat", "A" * 1_000_000)
    [told] = (await road.data("history.timeline"))["events"]
    assert len(told["target"] or "") <= 512
    assert max(map(len, segment_path(road.home / "audit", 1).read_bytes().splitlines())) < 4096


async def test_a_flipped_byte_is_found_and_named(road: Road) -> None:
    await road.call("file.stat", "first.txt")
    await road.call("file.stat", "second.txt")
    path = segment_path(road.home / "audit", 1)
    path.write_bytes(path.read_bytes().replace(b"first.txt", b"fjrst.txt"))
    verified = await road.data("history.verify", principal=OWNER)
    assert (verified["valid"], verified["firstBad"]) == (False, 2)


async def test_nothing_happens_while_the_history_cannot_be_written(road: Road) -> None:
    await road.data("file.write", "before.txt", input={"content": "x"})
    with full_disk(segment_path(road.home / "audit", 1)):
        changed = await road.call("file.write", "during.txt", input={"content": "x"})
        looked = await road.call("file.read", "before.txt")
    assert changed["error"]["code"] == looked["error"]["code"] == "execution_failed"
    assert changed["error"]["retryable"] and "history" in changed["error"]["message"]
    assert not (road.root / "during.txt").exists()
    await road.data("file.write", "after.txt", input={"content": "x"})
    assert (await road.data("history.verify"))["valid"]


async def test_an_effect_whose_outcome_could_not_be_written_is_told_and_made_good(road: Road) -> None:
    store = road.app.dispatcher.audit
    journal = segment_path(road.home / "audit", 1)
    from support.events import event

    made = event("file.write", ok=None)
    store.intent(made)
    await store.durable()
    made.ok, made.effect = True, "confirmed"
    with full_disk(journal), pytest.raises(Exception, match="history"):
        await store.outcome(made)
    await road.call("file.stat", "a")
    told = {event["operationId"]: event for event in (await road.data("history.timeline"))["events"]}
    assert told[made.operation_id]["outcome"] == "done"


async def test_the_bundle_tells_where_folders_lie_to_the_owner_alone(tmp_path: Path) -> None:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root")]) as road:
        told = await road.data("history.debug_bundle")
        assert told["bundle"]["config"]["scopes"][0]["roots"] == 1
        assert str(tmp_path) not in str(told)
        asked = Question("debug_bundle", visible=None)
        at_the_terminal = answer_now(road.app.services.use(AuditStore), asked, road.app.config)
        assert at_the_terminal["bundle"]["config"]["scopes"][0]["roots"] == [str(tmp_path / "root")]


async def test_the_bundle_holds_no_token_and_no_rule_text(tmp_path: Path) -> None:
    scope = folder_scope(tmp_path / "root", allowedCommands=["deploy --token hunter2hunter2"])
    async with Road.open(tmp_path, [scope]) as road:
        bundle = (await road.data("history.debug_bundle"))["bundle"]
        assert bundle["config"]["scopes"][0]["policy"]["allowedCommands"] == 1
        assert "hunter2" not in str(bundle)
        assert bundle["config"]["ownerToken"] == "not set"
