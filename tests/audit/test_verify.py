"""Verify: no edit, cut, swap, truncation or invention goes unseen, and the first bad record is named."""

import random
import shutil
import sqlite3
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from computer_linker.audit.journal import AuditJournal
from computer_linker.audit.layout import list_segments, segment_path
from computer_linker.audit.retention import prunable, retire
from computer_linker.audit.store import AuditStore
from computer_linker.audit.verify import verify
from support.events import event


def written(folder: Path, records: int = 120, segment_bytes: int = 4000) -> AuditJournal:
    journal = AuditJournal(folder, segment_bytes=segment_bytes)
    for number in range(records):
        journal.append([f'"kind":"note","value":{number},"text":"{"x" * (number % 7)}"'])
    journal.close()
    return journal


def tamper(folder: Path, dice: random.Random) -> str:
    """Change the folder in one random way; a word for how."""
    kind = dice.choice(
        ["flip", "cut line", "swap lines", "truncate", "duplicate", "insert", "drop segment", "head", "bytes"]
    )
    path = segment_path(folder, dice.choice(list_segments(folder)))
    if kind == "head":
        path, kind = folder / "head", "flip"
    raw = bytearray(path.read_bytes())
    lines = bytes(raw).splitlines(keepends=True)
    at = dice.randrange(len(raw.rstrip()))
    if kind == "flip":
        raw[at] ^= 1 << dice.randrange(8)
    elif kind == "cut line":
        del lines[dice.randrange(len(lines))]
        raw = bytearray(b"".join(lines))
    elif kind == "swap lines":
        first, second = dice.sample(range(len(lines)), 2)
        lines[first], lines[second] = lines[second], lines[first]
        raw = bytearray(b"".join(lines))
    elif kind == "truncate":
        del raw[at:]
    elif kind == "duplicate":
        lines.insert(dice.randrange(len(lines) + 1), lines[dice.randrange(len(lines))])
        raw = bytearray(b"".join(lines))
    elif kind == "insert":
        lines.insert(dice.randrange(len(lines) + 1), b'%032x {"n":5,"kind":"note"}\n' % dice.getrandbits(128))
        raw = bytearray(b"".join(lines))
    elif kind == "bytes":
        raw[at:at] = bytes(dice.randrange(256) for _ in range(dice.randrange(1, 5)))
    if kind == "drop segment":
        path.unlink()
    else:
        path.write_bytes(bytes(raw))
    return kind


@pytest.mark.parametrize("times", [400, pytest.param(10_000, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
def test_every_random_tampering_is_found(tmp_path: Path, times: int) -> None:
    key = written(tmp_path / "good").key
    assert verify(tmp_path / "good", key).ok
    dice = random.Random(5)
    good = {path.name: path.read_bytes() for path in (tmp_path / "good").iterdir()}
    folder = tmp_path / "bad"
    for attempt in range(times):
        shutil.copytree(tmp_path / "good", folder)
        kind = tamper(folder, dice)
        same = {path.name: path.read_bytes() for path in folder.iterdir()} == good
        found = verify(folder, key)
        assert found.ok is same, (attempt, kind, found)
        assert same or found.first_bad is not None
        shutil.rmtree(folder)


def test_the_first_bad_record_is_named(tmp_path: Path) -> None:
    key = written(tmp_path, records=20, segment_bytes=1 << 20).key
    path = segment_path(tmp_path, 1)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[7] = lines[7].replace(b'"value":6', b'"value":9')
    path.write_bytes(b"".join(lines))
    found = verify(tmp_path, key)
    assert (found.ok, found.first_bad) == (False, 8)


def test_a_chain_recomputed_without_the_key_is_found(tmp_path: Path) -> None:
    key = written(tmp_path / "audit", records=5, segment_bytes=1 << 20).key
    written(tmp_path / "forged", records=5, segment_bytes=1 << 20)
    for name in ("head", segment_path(tmp_path, 1).name):
        shutil.copy(tmp_path / "forged" / name, tmp_path / "audit" / name)
    assert not verify(tmp_path / "audit", key).ok


def test_pruning_keeps_the_chain_provable(tmp_path: Path) -> None:
    journal = written(tmp_path)
    gone = prunable(tmp_path, before=None, max_bytes=4000)
    assert gone and gone == list_segments(tmp_path)[: len(gone)]
    retire(tmp_path, journal.key, gone, before=None, room=0)
    found = verify(tmp_path, journal.key)
    assert found.ok and found.begins_at == list_segments(tmp_path)[0] > 1
    reopened = AuditJournal(tmp_path)
    reopened.append(['"kind":"note","value":1'])
    reopened.close()
    assert verify(tmp_path, journal.key).ok


@pytest.mark.parametrize("how", ["more segments than the anchor says", "a changed anchor", "no anchor"])
def test_records_taken_away_under_cover_of_pruning_are_missed(tmp_path: Path, how: str) -> None:
    journal = written(tmp_path)
    retire(tmp_path, journal.key, prunable(tmp_path, before=None, max_bytes=4000), before=None, room=0)
    if how == "more segments than the anchor says":
        segment_path(tmp_path, list_segments(tmp_path)[0]).unlink()
    elif how == "a changed anchor":
        anchor = (tmp_path / "anchor").read_bytes()
        (tmp_path / "anchor").write_bytes(anchor.replace(b'"number":', b'"number":1'))
    else:
        (tmp_path / "anchor").unlink()
    assert not verify(tmp_path, journal.key).ok


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE events SET op = 'file.list' WHERE number = 4",
        "UPDATE events SET ok = 1, code = NULL WHERE number = 7",
        "DELETE FROM events WHERE number = 5",
        "UPDATE events SET scope = 'other' WHERE number = 3",
        "INSERT INTO events SELECT 999, id, at, scope, op, ok, code, client, session, connection, principal, segment,"
        " offset, length, previous, end_number, end_segment, end_offset, end_length, end_previous, text, approved, approved_by,"
        " handle, request FROM events WHERE number = 3",
        "UPDATE events SET handle = 'proc_000000000000000000000000' WHERE number = 4",
    ],
)
@pytest.mark.anyio
async def test_an_edited_index_is_found_and_made_again(tmp_path: Path, change: str) -> None:
    store = AuditStore(tmp_path)
    for number in range(10):
        made = event(ok=number % 2 == 0, error_code=None if number % 2 == 0 else "not_found")
        await store.record(made)
    # The head is kept at the end of each turn of the loop.
    await anyio.lowlevel.checkpoint()
    store.index.catch_up()
    assert verify(tmp_path, store.journal.key, store.index).ok
    with sqlite3.connect(tmp_path / "index.db") as database:
        database.execute(change)
    database.close()
    assert not verify(tmp_path, store.journal.key, store.index).ok
    assert verify(tmp_path, store.journal.key, store.index).ok
    await store.aclose()
