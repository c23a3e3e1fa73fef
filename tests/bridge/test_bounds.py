"""Evidence is bounded: the old goes, the oldest first, and nothing that is not evidence is touched."""

import os
from pathlib import Path

from computer_linker.model.ids import new_ulid
from computer_linker.providers.evidence import bounds


def _prune(desktop: Path, now: float) -> int:
    fd = os.open(desktop, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return bounds.prune(fd, now, keep="", every_s=0)
    finally:
        os.close(fd)


def _execution(desktop: Path, day: str, modified: float) -> Path:
    folder = desktop / day / new_ulid()
    folder.mkdir(parents=True)
    (folder / "result.json").write_text("{}")
    os.utime(folder, (modified, modified))
    return folder


def test_what_is_too_old_goes_and_what_is_not_ours_stays(tmp_path: Path) -> None:
    now = 2_000_000_000.0
    old, fresh = _execution(tmp_path, "2033-01-01", now - bounds.MAX_AGE_S - 1), _execution(tmp_path, "2033-05-18", now)
    mine = tmp_path / "2033-01-01" / "notes"
    mine.mkdir()
    (mine / "keep.txt").write_text("kept")
    assert _prune(tmp_path, now) == 1
    assert not old.exists() and fresh.exists() and (mine / "keep.txt").exists()


def test_a_link_among_the_evidence_is_never_followed(tmp_path: Path) -> None:
    out, desktop = tmp_path / "out", tmp_path / "desktop"
    day = desktop / "2020-01-01"
    day.mkdir(parents=True)
    inner = out / new_ulid()
    inner.mkdir(parents=True)
    (inner / "keep.txt").write_text("kept")
    (day / inner.name).symlink_to(inner)
    (desktop / "2020-01-02").symlink_to(out)
    _prune(desktop, 2_000_000_000.0)
    assert (inner / "keep.txt").read_text() == "kept"


def test_the_oldest_go_when_there_are_too_many(tmp_path: Path) -> None:
    now = 2_000_000_000.0
    made = [_execution(tmp_path, "2033-05-18", now) for _ in range(bounds.MAX_FOLDERS + 3)]
    assert _prune(tmp_path, now) == 3
    assert [folder.exists() for folder in made[:4]] == [False, False, False, True]
