"""The reserve: one client's reads push out nothing but that client's own reads, and the chain stays provable."""

import random
import shutil
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import create_task_group, to_thread

from computer_linker.audit import prune as pruning
from computer_linker.audit.layout import list_segments
from computer_linker.audit.reserve import read_anchor
from computer_linker.audit.retention import Share, excess
from computer_linker.audit.store import AuditStore
from computer_linker.audit.verify import verify
from computer_linker.audit.views import answer
from support.events import event

pytestmark = pytest.mark.anyio
CAP = 200_000
SEGMENT = 8_000


def opened(folder: Path) -> AuditStore:
    store = AuditStore(folder)
    store.journal.segment_bytes = SEGMENT
    return store


async def change(store: AuditStore, **parts: Any) -> str:
    """An intent and its outcome; the operation's id."""
    made = event("file.write", ok=None, **parts)
    store.intent(made)
    made.ok, made.effect = True, "confirmed"
    await store.outcome(made)
    return made.operation_id


async def flood(store: AuditStore, count: int, who: str = "oauth:reader") -> None:
    for _ in range(count):
        await store.record(event("file.stat", "x" * 200, principal=who, ok=False, error_code="not_found"))


async def pruned(folder: Path, **how: Any) -> int:
    """Prune as the service does: in a thread, while the loop lets go of the journal's lock."""
    return await to_thread.run_sync(partial(pruning.prune, folder, **how))


async def told(store: AuditStore, query: str | None = None, view: str = "timeline") -> list[dict[str, Any]]:
    """Every event, page by page."""
    events: list[dict[str, Any]] = []
    cursor = None
    while True:
        page = await answer(store, view=view, visible=None, query=query, limit=500, cursor=cursor)
        events += page["events"]
        cursor = page["nextCursor"]
        if cursor is None:
            return events


async def furnished(store: AuditStore) -> dict[str, str]:
    """One of each thing that must stay, by another principal than the reader's; operation ids by what they are."""
    refused = event("file.read", principal="oauth:other", ok=False, decision="deny", error_code="permission_denied")
    read = event("file.read", "seen.txt", principal="oauth:other")
    owners = event("file.read", "plan.txt", principal="cli:me")
    noted = event("principal.end", None, scope="", principal="oauth:gone", effect="confirmed")
    wrong = event("confirm.list", None, principal="oauth:other")
    own = await change(store, principal="oauth:reader", target="own.txt")
    for each in (refused, read, owners, noted, wrong):
        await store.record(each)
    return {
        "change": await change(store, principal="local:me", target="kept.txt"), "own change": own,
        "refusal": refused.operation_id, "read": read.operation_id, "owner": owners.operation_id,
        "note": noted.operation_id, "consent": wrong.operation_id,
    }  # fmt: skip


async def test_a_reader_pushes_out_only_its_own_reads(tmp_path: Path) -> None:
    store = opened(tmp_path)
    wanted = await furnished(store)
    for _ in range(8):
        await flood(store, 400)
        await pruned(tmp_path, max_bytes=CAP)
        assert sum(path.stat().st_size for path in tmp_path.glob("*.jsonl")) < CAP + 2 * SEGMENT
    found = {one["operationId"]: one for one in await told(store)}
    assert set(wanted.values()) <= found.keys(), {name for name, one in wanted.items() if one not in found}
    assert found[wanted["change"]]["outcome"] == "done" and found[wanted["change"]]["target"] == "kept.txt"
    assert Counter(one["principal"] for one in found.values())["oauth:reader"] < 1000
    verified = verify(tmp_path, store.key, store.index)
    assert verified.ok and verified.kept and verified.begins_at > 1, verified
    await store.aclose()


async def test_a_flood_of_refusals_or_changes_pushes_out_only_its_own(tmp_path: Path) -> None:
    store = opened(tmp_path)
    wanted = await furnished(store)
    for _ in range(4):
        for _ in range(150):
            await change(store, principal="oauth:reader")
            await store.record(
                event(principal="oauth:reader", ok=False, decision="deny", error_code="path_out_of_scope")
            )
        await pruned(tmp_path, max_bytes=CAP)
    found = {one["operationId"] for one in await told(store)}
    assert {wanted[name] for name in wanted if name != "own change"} <= found
    assert verify(tmp_path, store.key, store.index).ok
    await store.aclose()


async def test_the_views_are_in_order_and_alike_after_the_index_is_made_again(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for number in range(5):
        await furnished(store)
        await flood(store, 200)
        # In turn the index is behind, and has taken in all.
        if number % 2:
            await told(store)
        await pruned(tmp_path, max_bytes=CAP)
    events = await told(store)
    assert [one["number"] for one in events] == sorted(one["number"] for one in events)
    assert await told(store, view="last") == events[::-1]
    assert not [one for one in events if one["outcome"] in ("changed", "unknown")]
    words = await told(store, "kept")
    assert len(words) == 5 and len(await told(store, "principal:oauth:other op:file.read")) == 10
    store.index.rebuild()
    assert (await told(store), await told(store, "kept")) == (events, words)
    assert verify(tmp_path, store.key, store.index).ok
    await store.aclose()


async def test_an_index_that_was_never_made_finds_what_is_in_the_reserve(tmp_path: Path) -> None:
    store = opened(tmp_path)
    wanted = await furnished(store)
    await flood(store, 800)
    await pruned(tmp_path, max_bytes=CAP)
    assert set(wanted.values()) <= {one["operationId"] for one in await told(store)}
    await store.aclose()


async def test_what_is_too_old_leaves_the_reserve_too(tmp_path: Path) -> None:
    store = opened(tmp_path)
    old = await change(store, principal="local:me", started_at="2026-01-01T00:00:00.000Z")
    new = await change(store, principal="local:me")
    await flood(store, 800)
    await pruned(tmp_path, max_bytes=CAP)
    assert {old, new} <= {one["operationId"] for one in await told(store)}
    gone = await pruned(tmp_path, before="2026-06-01T00:00:00.000Z")
    found = {one["operationId"] for one in await told(store)}
    assert gone == 2 and old not in found and new in found
    assert verify(tmp_path, store.key, store.index).ok
    await store.aclose()


async def test_a_lost_intent_keeps_its_unknown_outcome(tmp_path: Path) -> None:
    store = opened(tmp_path)
    made = event("file.write", ok=None, principal="local:me")
    store.intent(made)
    await flood(store, 800)
    await pruned(tmp_path, max_bytes=CAP)
    assert (await told(store, "op:file.write"))[0]["outcome"] == "running"
    made.ok = True
    await store.outcome(made)
    assert (await told(store, "op:file.write"))[0]["outcome"] == "done"
    await flood(store, 800)
    await pruned(tmp_path, max_bytes=CAP)
    assert (await told(store, "op:file.write"))[0]["outcome"] == "done"
    assert verify(tmp_path, store.key, store.index).ok
    await store.aclose()


def changed(folder: Path, dice: random.Random) -> str:
    """Change a file of the reserve, or the anchor, in one random way."""
    kind = dice.choice(["flip", "cut line", "swap", "truncate", "duplicate", "drop file", "exchange files"])
    files = sorted(folder.glob("kept-*.jsonl"))
    path = dice.choice([*files, folder / "anchor"])
    raw = bytearray(path.read_bytes())
    lines = bytes(raw).splitlines(keepends=True)
    first, second = dice.randrange(len(lines)), dice.randrange(len(lines))
    if kind == "flip":
        raw[dice.randrange(len(raw.rstrip()))] ^= 1 << dice.randrange(8)
    elif kind == "truncate":
        del raw[dice.randrange(len(raw.rstrip())) :]
    elif kind == "drop file":
        path.unlink()
        return kind
    elif kind == "exchange files" and len(files) > 1:
        one, other = dice.sample(files, 2)
        path, raw = one, bytearray(other.read_bytes())
    elif kind == "duplicate":
        lines.insert(first, lines[second])
        raw = bytearray(b"".join(lines))
    elif kind == "swap":
        lines[first], lines[second] = lines[second], lines[first]
        raw = bytearray(b"".join(lines))
    else:
        del lines[first]
        raw = bytearray(b"".join(lines))
    path.write_bytes(bytes(raw))
    return kind


async def test_every_change_to_the_reserve_is_found(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    store = opened(good)
    for _ in range(3):
        await furnished(store)
        await flood(store, 300)
        await pruned(good, max_bytes=CAP)
    await store.aclose()
    before = {path.name: path.read_bytes() for path in good.iterdir()}
    dice = random.Random(1)
    for attempt in range(150):
        shutil.copytree(good, bad)
        kind = changed(bad, dice)
        same = {path.name: path.read_bytes() for path in bad.iterdir()} == before
        assert verify(bad, store.key).ok is same, (attempt, kind)
        shutil.rmtree(bad)


@pytest.mark.parametrize("point", ["before the anchor", "before the removal"])
async def test_a_crash_while_pruning_loses_nothing(tmp_path: Path, point: str) -> None:
    store = opened(tmp_path / "audit")
    wanted = await furnished(store)
    await flood(store, 800)
    before = await told(store)
    shutil.copytree(tmp_path / "audit", tmp_path / "copy")
    await pruned(tmp_path / "audit", max_bytes=CAP)
    # The folder as a crash leaves it: new files without the anchor that names them, or old ones beside it.
    for path in (tmp_path / "copy").iterdir():
        if path.name.startswith("journal-"):
            shutil.copy(path, tmp_path / "audit")
    if point == "before the anchor":
        (tmp_path / "audit" / "anchor").unlink()
    await store.aclose()
    again = opened(tmp_path / "audit")
    found = {one["operationId"] for one in await told(again)}
    assert set(wanted.values()) <= found
    if point == "before the anchor":
        assert found == {one["operationId"] for one in before}
    assert verify(tmp_path / "audit", again.key, again.index).ok
    await pruned(tmp_path / "audit", max_bytes=CAP)
    assert set(wanted.values()) <= {one["operationId"] for one in await told(again)}
    assert verify(tmp_path / "audit", again.key, again.index).ok
    known = {file.id for file in read_anchor(tmp_path / "audit", again.key).kept}
    assert {int(path.stem[5:]) for path in (tmp_path / "audit").glob("kept-*")} == known
    await again.aclose()


async def test_growth_within_a_day_is_noticed(tmp_path: Path) -> None:
    store = opened(tmp_path)
    assert not pruning.is_over(tmp_path, CAP)
    await flood(store, 600)
    assert pruning.is_over(tmp_path, CAP)
    await to_thread.run_sync(pruning.keep_bounded, tmp_path, CAP)
    assert not pruning.is_over(tmp_path, CAP) and list_segments(tmp_path)[0] > 1
    await store.aclose()


def test_small_shares_lose_nothing_and_large_ones_give_alike() -> None:
    usage = {Share("a", "reads"): 900, Share("b", "reads"): 600, Share("c", "reads"): 100, Share("a", "acts"): 300}
    assert excess(usage, 1000) == {Share("a", "reads"): 700, Share("b", "reads"): 400}
    assert excess({}, 10) == {}
    assert excess(usage, 10_000) == {}


async def test_pages_read_while_records_move_are_never_called_changed(tmp_path: Path) -> None:
    store = opened(tmp_path)
    await furnished(store)
    for _ in range(6):
        await flood(store, 150)
        async with create_task_group() as group:
            group.start_soon(partial(pruned, tmp_path, max_bytes=CAP))
            for _ in range(4):
                assert not [one for one in await told(store) if one["outcome"] == "changed"]
    await store.aclose()
