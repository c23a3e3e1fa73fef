"""The store's bounds hold whatever comes, and a killed service leaves nothing that is not cleaned up."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from computer_linker.artifacts.store import ArtifactStore, Bounds, Filter, Owner
from computer_linker.errors import LimitExceeded, NotFound
from computer_linker.model.artifact import Artifact

Open = Callable[..., ArtifactStore]
APP, OTHER = Owner("app", "p", "s", "o"), Owner("other", "p", "s", "o")


@pytest.fixture
def opened() -> Iterator[Open]:
    """Opens stores, and closes them at the end."""
    made: list[ArtifactStore] = []

    def open_one(folder: Path, bounds: Bounds = Bounds()) -> ArtifactStore:
        made.append(ArtifactStore(folder, bounds))
        return made[-1]

    yield open_one
    for one in made:
        one.close()


def _objects(folder: Path) -> list[Path]:
    return [path for path in (folder / "objects").rglob("*") if path.is_file()]


def _add(kept: ArtifactStore, text: str, owner: Owner = APP) -> Artifact:
    return kept.add(text.encode(), "console_logs", "text/plain", "t", owner)


def test_a_flood_stays_within_the_quota_and_the_oldest_go(tmp_path: Path, opened: Open) -> None:
    kept = opened(tmp_path, Bounds(scope_bytes=100_000))
    theirs = _add(kept, "theirs", OTHER)
    made = [_add(kept, f"{number:04}" * 2500) for number in range(60)]
    count, size = kept.size_of("app")
    assert (count, size) == (10, 100_000)
    assert sum(path.stat().st_size for path in _objects(tmp_path)) == 100_000 + theirs.size
    assert [one.id for one in kept.listed(Filter("app"), 99)] == [one.id for one in reversed(made[-10:])]
    assert kept.content(theirs) == b"theirs"


def test_a_nearly_full_disk_takes_nothing_more(tmp_path: Path, opened: Open) -> None:
    kept = opened(tmp_path, Bounds(free_bytes=1 << 62))
    with pytest.raises(LimitExceeded):
        _add(kept, "x")
    assert _objects(tmp_path) == []
    assert kept.size_of("app") == (0, 0)


def test_what_a_killed_service_left_is_swept(tmp_path: Path, opened: Open) -> None:
    kept = opened(tmp_path)
    mine = _add(kept, "mine")
    orphan = tmp_path / "objects" / "ab" / ("ab" * 32)
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_bytes(b"x")
    (orphan.parent / ".half").write_bytes(b"x")
    kept.sweep(time.time())
    assert [path.name for path in _objects(tmp_path)] == [mine.sha256]


def test_what_is_too_old_goes_and_shared_bytes_stay_for_the_rest(tmp_path: Path, opened: Open) -> None:
    kept = opened(tmp_path, Bounds(keep_s=50))
    old = _add(kept, "same")
    kept._db.execute("UPDATE artifacts SET created_at = created_at - 60")
    young = _add(kept, "same")
    assert kept.sweep(time.time()) == 1
    with pytest.raises(NotFound):
        kept.find(old.id, "app")
    assert kept.content(young) == b"same"


def test_bytes_that_were_changed_or_lost_are_not_given_out(tmp_path: Path, opened: Open) -> None:
    kept = opened(tmp_path)
    made = _add(kept, "true")
    (path,) = _objects(tmp_path)
    path.write_bytes(b"false")
    with pytest.raises(NotFound):
        kept.content(made)
    path.unlink()
    with pytest.raises(NotFound):
        kept.content(made)


def test_pages_neither_skip_nor_repeat_though_the_clock_stands_still(tmp_path: Path, opened: Open) -> None:
    kept = opened(tmp_path)
    made = [_add(kept, str(number)).id for number in range(40)]
    seen: list[str] = []
    before: float | None = None
    while page := kept.listed(Filter("app", before=before), 7):
        seen += [one.id for one in page]
        before = page[-1].created_at
    assert seen == made[::-1]


def test_asked_by_session_label_and_kind(tmp_path: Path, opened: Open) -> None:
    kept = opened(tmp_path)
    one = kept.add(b"1", "document", "text/plain", "t", Owner("app", "p", "s1", "o", "issue-1"))
    two = kept.add(b"2", "console_logs", "text/plain", "t", Owner("other", "p", "s2", "o", "issue-1"))
    assert [found.id for found in kept.listed(Filter(session="s1"), 9)] == [one.id]
    assert [found.id for found in kept.listed(Filter(label="issue-1"), 9)] == [two.id, one.id]
    assert [found.id for found in kept.listed(Filter(kind="document"), 9)] == [one.id]
    assert kept.find(two.id, None).id == two.id


def test_a_reader_changes_nothing_and_reads_beside_a_writer(tmp_path: Path, opened: Open) -> None:
    kept = opened(tmp_path)
    one = _add(kept, "one")
    reader = ArtifactStore(tmp_path, only_to_read=True)
    two = _add(kept, "two")
    assert [found.id for found in reader.listed(Filter(), 9)] == [two.id, one.id]
    assert reader.content(one) == b"one"
    with pytest.raises(sqlite3.OperationalError):
        _add(reader, "three")
    reader.close()
    kept.close()
    again = ArtifactStore(tmp_path, only_to_read=True)
    assert len(again.listed(Filter(), 9)) == 2
    again.close()
