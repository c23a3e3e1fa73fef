"""The journal: what is appended stays, in order, whatever ends the process."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from computer_linker.audit.faults import AuditDamaged, AuditUnavailable
from computer_linker.audit.journal import AuditJournal
from computer_linker.audit.layout import list_segments, segment_path
from computer_linker.audit.verify import verify


def body(number: int) -> str:
    return f'"kind":"note","value":{number}'


def values(folder: Path) -> list[int]:
    """Every note in the journal, in order."""
    found = []
    for segment in list_segments(folder):
        for line in segment_path(folder, segment).read_text("ascii").splitlines():
            fields = json.loads(line[33:])
            if fields["kind"] == "note":
                found.append(fields["value"])
    return found


@contextmanager
def files_no_longer_than(size: int) -> Iterator[None]:
    """Writes beyond this size fail, as on a full disk."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


def test_records_come_back_in_order_after_reopening(tmp_path: Path) -> None:
    for start in (0, 10, 20):
        journal = AuditJournal(tmp_path)
        for number in range(start, start + 10):
            journal.append([body(number)])
        journal.close()
    assert values(tmp_path) == list(range(30))
    assert verify(tmp_path, AuditJournal(tmp_path).key).ok


def test_the_folder_and_its_files_are_private(tmp_path: Path) -> None:
    journal = AuditJournal(tmp_path / "audit")
    journal.append([body(1)])
    assert (tmp_path / "audit").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "audit").iterdir()} == {0o600}


def test_a_torn_last_line_is_dropped_and_the_chain_goes_on(tmp_path: Path) -> None:
    journal = AuditJournal(tmp_path)
    journal.append([body(1)])
    journal.close()
    with segment_path(tmp_path, 1).open("ab") as file:
        file.write(b'0123456789abcdef0123456789abcdef {"n":3,"kind":"no')
    journal = AuditJournal(tmp_path)
    journal.append([body(2)])
    assert values(tmp_path) == [1, 2]
    assert verify(tmp_path, journal.key).ok


def test_a_record_whose_head_was_not_kept_is_taken_in(tmp_path: Path) -> None:
    journal = AuditJournal(tmp_path)
    journal.append([body(1)])
    head = (tmp_path / "head").read_bytes()
    journal.append([body(2)])
    journal.close()
    (tmp_path / "head").write_bytes(head)
    journal = AuditJournal(tmp_path)
    journal.append([body(3)])
    assert values(tmp_path) == [1, 2, 3]
    assert verify(tmp_path, journal.key).ok


@pytest.mark.parametrize("lost", ["the head", "the new segment's first record and the head", "only the first head"])
def test_a_crash_around_a_new_segment_or_the_first_record_loses_nothing(tmp_path: Path, lost: str) -> None:
    journal = AuditJournal(tmp_path, segment_bytes=300)
    journal.append([body(0)])
    if lost == "only the first head":
        (tmp_path / "head").write_bytes(b"")
        expected = [0, 99]
    else:
        while len(list_segments(tmp_path)) == 1:
            head, numbers = (tmp_path / "head").read_bytes(), values(tmp_path)
            journal.append([body(len(numbers))])
        (tmp_path / "head").write_bytes(head)
        if lost.startswith("the new"):
            segment_path(tmp_path, list_segments(tmp_path)[1]).write_bytes(b"")
        else:
            numbers = values(tmp_path)
        expected = [*numbers, 99]
    journal.close()
    journal = AuditJournal(tmp_path)
    journal.append([body(99)])
    assert values(tmp_path) == expected
    assert verify(tmp_path, journal.key).ok


def test_segments_follow_each_other_and_verify_as_one_chain(tmp_path: Path) -> None:
    journal = AuditJournal(tmp_path, segment_bytes=500)
    for number in range(60):
        journal.append([body(number)])
    assert len(list_segments(tmp_path)) > 5
    assert values(tmp_path) == list(range(60))
    assert verify(tmp_path, journal.key).ok


def test_a_full_disk_refuses_the_record_and_space_brings_it_back(tmp_path: Path) -> None:
    journal = AuditJournal(tmp_path)
    journal.append([body(1)])
    before = segment_path(tmp_path, 1).read_bytes()
    for room in (0, 10, 60):
        with files_no_longer_than(len(before) + room), pytest.raises(AuditUnavailable):
            journal.append([body(2), body(3)])
        assert segment_path(tmp_path, 1).read_bytes() == before
    journal.append([body(4)])
    assert values(tmp_path) == [1, 4]
    assert verify(tmp_path, journal.key).ok


def test_a_full_disk_at_a_new_segment_leaves_a_chain_that_goes_on(tmp_path: Path) -> None:
    journal = AuditJournal(tmp_path, segment_bytes=200)
    journal.append([body(1)])
    with files_no_longer_than(segment_path(tmp_path, 1).stat().st_size), pytest.raises(AuditUnavailable):
        journal.append([body(2)])
    journal.append([body(3)])
    journal.close()
    journal = AuditJournal(tmp_path)
    journal.append([body(4)])
    assert values(tmp_path) == [1, 3, 4]
    assert verify(tmp_path, journal.key).ok


_WRITER = """
import sys
from pathlib import Path
from computer_linker.audit.journal import AuditJournal
journal = AuditJournal(Path(sys.argv[1]), segment_bytes=2000)
for number in range(200):
    journal.append([f'"kind":"note","value":{int(sys.argv[2]) * 1000 + number}'])
"""


def test_several_processes_append_to_one_chain(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path), str(n)]) for n in range(4)]
    assert [writer.wait(timeout=240) for writer in writers] == [0, 0, 0, 0]
    found = values(tmp_path)
    for writer in range(4):
        assert [value for value in found if value // 1000 == writer] == [writer * 1000 + n for n in range(200)]
    assert verify(tmp_path, AuditJournal(tmp_path).key).ok


def cut_after(folder: Path, keep: int) -> None:
    """Leave the head and the first `keep` lines, as a power cut may."""
    path = segment_path(folder, 1)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:keep]))


def another_boot(journal: AuditJournal) -> None:
    from computer_linker.audit.layout import write_head

    journal.head.boot = "another run of the system"
    handle = os.open(journal.folder / "head", os.O_RDWR)
    write_head(handle, journal.key, journal.head)
    os.close(handle)


def test_after_a_power_cut_only_what_nobody_was_told_was_durable_may_be_gone(tmp_path: Path) -> None:
    journal = AuditJournal(tmp_path)
    journal.append([body(1)])
    journal.sync()
    journal.append([body(2), body(3)])
    another_boot(journal)
    journal.close()
    cut_after(tmp_path, 2)
    journal = AuditJournal(tmp_path)
    journal.append([body(4)])
    assert values(tmp_path) == [1, 4]
    assert '"kind":"lost","records":2' in segment_path(tmp_path, 1).read_text("ascii")
    assert verify(tmp_path, journal.key).ok


@pytest.mark.parametrize("reason", ["durable", "same boot"])
def test_a_cut_that_no_power_failure_explains_stops_the_start(tmp_path: Path, reason: str) -> None:
    journal = AuditJournal(tmp_path)
    journal.append([body(1), body(2), body(3)])
    if reason == "durable":
        journal.sync()
        another_boot(journal)
    journal.close()
    cut_after(tmp_path, 2)
    stored = segment_path(tmp_path, 1).read_bytes()
    with pytest.raises(AuditDamaged):
        AuditJournal(tmp_path)
    assert segment_path(tmp_path, 1).read_bytes() == stored


def test_a_lost_or_foreign_key_stops_the_start_with_a_hint(tmp_path: Path) -> None:
    AuditJournal(tmp_path).append([body(1)])
    (tmp_path / "key").write_bytes(b"short")
    with pytest.raises(AuditDamaged) as caught:
        AuditJournal(tmp_path)
    assert caught.value.hint
    (tmp_path / "key").write_bytes(os.urandom(32))
    with pytest.raises(AuditDamaged):
        AuditJournal(tmp_path)


def test_a_removed_journal_or_head_stops_the_start(tmp_path: Path) -> None:
    journal = AuditJournal(tmp_path, segment_bytes=300)
    for number in range(20):
        journal.append([body(number)])
    journal.close()
    head = (tmp_path / "head").read_bytes()
    (tmp_path / "head").unlink()
    with pytest.raises(AuditDamaged):
        AuditJournal(tmp_path)
    (tmp_path / "head").write_bytes(head)
    segment_path(tmp_path, list_segments(tmp_path)[-1]).unlink()
    with pytest.raises(AuditDamaged):
        AuditJournal(tmp_path)
