"""Lines that the engine reports are confirmed against the file of that name, in the encodings that the engine reads."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from computer_linker.providers.search.confirmed import Confirmed
from computer_linker.providers.search.text import Record

TEXT = "one\ntwo ä\n"
FILES = {
    "plain": TEXT.encode(),
    "marked": b"\xef\xbb\xbf" + TEXT.encode(),
    "wide": TEXT.encode("utf-16"),
    "folder/inner": TEXT.encode(),
}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "link").symlink_to("plain")
    (tmp_path / "way").symlink_to("folder")
    os.mkfifo(tmp_path / "pipe")
    held = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield held
    os.close(held)


def line(path: str, offset: int, text: str) -> Record:
    return Record("match", path.encode(), text=text.encode(), offset=offset)


@pytest.mark.parametrize("name", FILES)
def test_a_line_of_the_file_is_confirmed(folder: int, name: str) -> None:
    with Confirmed(folder) as confirmed:
        assert confirmed(line(name, 0, "one\n"))
        assert confirmed(line(name, 4, "two ä\n"))
        assert not confirmed(line(name, 4, "two b\n"))
        assert not confirmed(line(name, 8, "two ä\n"))


@pytest.mark.parametrize("name", ["link", "way/inner", "pipe", "missing", "folder", "../plain"])
def test_nothing_is_confirmed_of_a_link_or_of_what_is_no_file(folder: int, name: str) -> None:
    with Confirmed(folder) as confirmed:
        assert not confirmed(line(name, 0, "one\n"))
        assert confirmed(line("plain", 0, "one\n"))


def test_a_mark_that_the_engine_was_told_to_keep_counts(folder: int) -> None:
    with Confirmed(folder) as confirmed:
        assert confirmed(line("marked", 0, "\ufeffone\n"))
        assert confirmed(line("marked", 7, "two ä\n"))


def test_no_descriptor_stays_open(folder: int) -> None:
    before = sorted(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else []
    with Confirmed(folder) as confirmed:
        for name in FILES:
            confirmed(line(name, 0, "one\n"))
    after = sorted(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else []
    assert after == before
