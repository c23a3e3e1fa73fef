"""What is kept of refused names: whole, private, and within bounds; the newest always."""

import os
import time
from pathlib import Path

import pytest

from computer_linker.providers.sandbox.refused import Refused


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def taken(refused: Refused, root: Path, name: str, command: str) -> Path:
    fd = os.open(root, os.O_RDONLY)
    try:
        return Path(refused.take(fd, (name,), command))
    finally:
        os.close(fd)


def test_what_is_taken_is_kept_whole_and_private(tmp_path: Path, root: Path) -> None:
    refused = Refused(tmp_path / "refused")
    for number in range(3):
        (root / ".vscode").mkdir()
        (root / ".vscode" / "tasks.json").write_text(str(number))
        kept = taken(refused, root, ".vscode", "op_1")
        assert (kept / "tasks.json").read_text() == str(number) and kept.is_relative_to(tmp_path / "refused" / "op_1")
    assert list(root.iterdir()) == []
    for place in (tmp_path / "refused", tmp_path / "refused" / "op_1"):
        assert place.stat().st_mode & 0o777 == 0o700


def test_a_store_that_cannot_be_written_leaves_the_name_aside(tmp_path: Path, root: Path) -> None:
    (tmp_path / "refused").write_text("in the way")
    (root / ".vscode").mkdir()
    assert str(taken(Refused(tmp_path / "refused"), root, ".vscode", "op_1")) == "vscode.refused-op_1"
    assert [path.name for path in root.iterdir()] == ["vscode.refused-op_1"]


def test_the_oldest_go_when_there_are_too_many(tmp_path: Path, root: Path) -> None:
    refused = Refused(tmp_path / "refused")
    for number in range(205):
        (root / ".mcp.json").write_text("x")
        kept = taken(refused, root, ".mcp.json", f"op_{number}")
        os.utime(kept.parents[1], (time.time() - 1000 + number,) * 2)
    refused.tidy("op_204")
    left = {path.name for path in (tmp_path / "refused").iterdir()}
    assert left == {f"op_{number}" for number in range(5, 205)}


def put(root: Path, kilobytes: int) -> None:
    (root / ".mcp.json").write_bytes(b"x" * 1024 * kilobytes)


def test_what_is_old_or_too_large_goes_and_the_newest_stays(tmp_path: Path, root: Path) -> None:
    refused = Refused(tmp_path / "refused", max_bytes=400 * 1024)
    commands = ("old", 31, 1), *((f"large{number}", 5 - number, 80) for number in range(5)), ("newest", 0, 80)
    for command, days, size in commands:
        put(root, size)
        kept = taken(refused, root, ".mcp.json", command)
        os.utime(kept.parents[1], (time.time() - days * 86_400,) * 2)
    refused.tidy("newest")
    left = {path.name for path in (tmp_path / "refused").iterdir()}
    assert left == {"large1", "large2", "large3", "large4", "newest"}


def test_a_file_counts_by_what_it_takes_of_the_disk(tmp_path: Path, root: Path) -> None:
    refused = Refused(tmp_path / "refused", max_bytes=400 * 1024)
    for command in ("first", "second"):
        put(root, 1)
        os.truncate(root / ".mcp.json", 1 << 33)
        taken(refused, root, ".mcp.json", command)
        refused.tidy(command)
    for again in (refused, Refused(tmp_path / "refused", max_bytes=400 * 1024)):
        again.tidy("second")
        assert {path.name for path in (tmp_path / "refused").iterdir()} == {"first", "second"}


def test_one_command_cannot_push_out_what_others_left(tmp_path: Path, root: Path) -> None:
    refused = Refused(tmp_path / "refused", max_bytes=400 * 1024)
    put(root, 4)
    taken(refused, root, ".mcp.json", "mine")
    kept = []
    for number in range(6):
        put(root, 60 if number else 500)
        kept.append(taken(refused, root, ".mcp.json", "loud"))
        refused.tidy("loud")
    assert {path.name for path in (tmp_path / "refused").iterdir()} == {"mine", "loud"}
    assert [path.is_absolute() for path in kept] == [False, True, False, False, False, False]
    assert not (root / ".mcp.json").exists() and all((root / path).exists() for path in kept)


def test_a_file_that_grows_after_it_was_taken_pushes_out_itself(tmp_path: Path, root: Path) -> None:
    """It is kept as a link, and a program that has it open can still write to it."""
    refused = Refused(tmp_path / "refused", max_bytes=400 * 1024)
    for days, command in ((3, "mine"), (2, "grows"), (0, "newest")):
        put(root, 60)
        with (root / ".mcp.json").open("ab") as still_open:
            kept = taken(refused, root, ".mcp.json", command)
            still_open.write(bytes(300 * 1024 if command == "grows" else 0))
        os.utime(kept.parents[1], (time.time() - days * 86_400,) * 2)
    Refused(tmp_path / "refused", max_bytes=400 * 1024).tidy("newest")
    assert {path.name for path in (tmp_path / "refused").iterdir()} == {"mine", "newest"}
