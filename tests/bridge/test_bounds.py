"""Evidence is bounded: the old goes, the oldest first, and nothing that is not evidence is touched."""

import os
from pathlib import Path

import pytest

from computer_linker.errors import LimitExceeded
from computer_linker.model.ids import new_ulid
from computer_linker.providers.evidence import MAX_AGE_S, MAX_BYTES, MAX_FOLDERS, MAX_KEPT_BYTES, Evidence, prune


def _prune(desktop: Path, now: float) -> int:
    fd = os.open(desktop, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return prune(fd, now, keep="", every_s=0)
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
    old, fresh = _execution(tmp_path, "2033-01-01", now - MAX_AGE_S - 1), _execution(tmp_path, "2033-05-18", now)
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
    made = [_execution(tmp_path, "2033-05-18", now) for _ in range(MAX_FOLDERS + 3)]
    assert _prune(tmp_path, now) == 3
    assert [folder.exists() for folder in made[:4]] == [False, False, False, True]


def test_the_oldest_go_when_they_are_too_large_together(tmp_path: Path) -> None:
    now = 2_000_000_000.0
    made = [_execution(tmp_path, "2033-05-18", now) for _ in range(4)]
    for folder in made:
        # Holes, so that a large file costs no disk.
        with (folder / "observe.png").open("wb") as file:
            file.truncate(MAX_KEPT_BYTES // 3)
        os.utime(folder, (now, now))
    assert _prune(tmp_path, now) == 2
    assert [folder.exists() for folder in made] == [False, False, True, True]


def test_one_execution_leaves_only_so_much(tmp_path: Path) -> None:
    workspace = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        evidence = Evidence.begin(workspace, new_ulid())
    finally:
        os.close(workspace)
    folder = tmp_path / evidence.where
    evidence.write("before.png", b"x" * (MAX_BYTES - 10))
    with pytest.raises(LimitExceeded):
        evidence.write("after.png", b"x" * 11)
    assert not (folder / "after.png").exists()
    evidence.write("ax.json", b"{}")
    assert {file.name for file in folder.iterdir()} == {"before.png", "ax.json"}


def test_evidence_goes_into_the_folder_that_was_opened_whatever_takes_its_name(tmp_path: Path) -> None:
    workspace, out = tmp_path / "workspace", tmp_path / "out"
    workspace.mkdir()
    out.mkdir()
    held = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY)
    evidence = Evidence.begin(held, new_ulid())
    folder = workspace / evidence.where
    aside = folder.rename(tmp_path / "aside")
    folder.symlink_to(out)
    evidence.write("observe.png", b"pixels")
    evidence.finish({"ok": True})
    os.close(held)
    assert list(out.iterdir()) == []
    assert {file.name for file in aside.iterdir()} == {"observe.png", "trace.jsonl", "result.json"}
