"""The three-way merge against `git merge-file`, which has to agree on clean merges and on conflicts."""

import random
import subprocess
import time
from pathlib import Path

import pytest

from computer_linker.changes.merge import merged


def by_git(folder: Path, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    for name, text in (("base", base), ("ours", ours), ("theirs", theirs)):
        (folder / name).write_bytes(text)
    done = subprocess.run(["git", "merge-file", "-p", "ours", "base", "theirs"], cwd=folder, capture_output=True)
    return done.stdout if done.returncode == 0 else None


def ours_of(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    return merged(base, ours, theirs, time.monotonic() + 10)


def changed(chance: random.Random, lines: list[str], side: str) -> list[str]:
    result = list(lines)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(result) + 1)
        match chance.randrange(3):
            case 0:
                result[at:at] = [f"{side} {chance.randrange(1000)}\n"]
            case 1:
                del result[at : at + chance.randrange(1, 3)]
            case _:
                result[at : at + 1] = [f"{side} {chance.randrange(1000)}\n"]
    return result


def test_it_is_as_git_merges(tmp_path: Path) -> None:
    chance = random.Random(8)
    agreed = 0
    for _ in range(150):
        base = [f"line {number}\n" for number in range(chance.randrange(1, 30))]
        ours, theirs = changed(chance, base, "ours"), changed(chance, base, "theirs")
        texts = ["".join(each).encode() for each in (base, ours, theirs)]
        theirs_by_git = by_git(tmp_path, *texts)
        mine = ours_of(*texts)
        # git also joins equal additions next to others; where both merge, they merge to the same.
        assert mine == theirs_by_git or mine is None, texts
        agreed += mine == theirs_by_git
    assert agreed >= 140


@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [
        (b"a\nb\nc\n", b"A\nb\nc\n", b"a\nb\nC\n"),
        (b"a\n", b"a\n", b"b\n"),
        (b"a\nb\nc", b"a\nb\nc\nd", b"x\na\nb\nc"),
        (b"", b"x\n", b""),
        (b"a\r\nb\r\n", b"a\r\nB\r\n", b"a\r\nb\r\nc\r\n"),
    ],
)
def test_these_merge_or_not_as_with_git(tmp_path: Path, base: bytes, ours: bytes, theirs: bytes) -> None:
    assert ours_of(base, ours, theirs) == by_git(tmp_path, base, ours, theirs)


def test_what_overlaps_or_is_no_text_is_not_merged() -> None:
    assert ours_of(b"a\nb\nc\n", b"a\nB\nc\n", b"a\nbb\nc\n") is None
    assert ours_of(b"a\n", b"a\n\0", b"b\n") is None
    assert ours_of(b"a\n", b"\xff\n", b"b\n") is None
    assert merged(b"a\n" * 3000, b"b\n" * 3000, b"c\n" * 3000, time.monotonic() - 1) is None
