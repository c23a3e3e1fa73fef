"""Evidence handed on into a folder that a client writes in: what the client put there is never written through."""

import os
import threading
from pathlib import Path

import pytest

from computer_linker.artifacts.kinds import ProofKind
from computer_linker.artifacts.store import ArtifactStore, Filter, Owner
from computer_linker.cli.output import CliError
from computer_linker.cli.proof_export import files_of, page_of
from support.service import write_config

KIND: ProofKind = "console_logs"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ArtifactStore:
    home = tmp_path / "home"
    write_config(home, tmp_path / "root")
    monkeypatch.setenv("COMPUTER_LINKER_HOME", str(home))
    kept = ArtifactStore(home / "artifacts")
    kept.add(b"\ntouch /tmp/owned\n", KIND, "text/plain", "a log", Owner("app", "p", "s", "op"))
    return kept


def test_a_page_replaces_a_planted_link_and_not_what_it_leads_to(store: ArtifactStore, tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    profile.write_text("mine")
    page = tmp_path / "root" / "proof.html"
    page.symlink_to(profile)
    page_of(store, store.listed(Filter(), 10), page, title=None, asked="", whole_session=False)
    assert profile.read_text() == "mine"
    assert not page.is_symlink() and page.read_text().startswith("<!doctype html>")
    assert page.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in page.parent.iterdir()] == ["proof.html"]


def test_files_are_never_written_through_a_link_that_came_in_between(store: ArtifactStore, tmp_path: Path) -> None:
    """A client that waits for the folder, and puts links in it the moment it is there."""
    profile = tmp_path / "profile"
    profile.write_text("mine")
    over = threading.Event()

    def plant() -> None:
        while not over.is_set():
            for number in range(rounds):
                try:
                    os.symlink(profile, tmp_path / "root" / f"out{number}" / f"001-{KIND}.txt")
                except OSError:
                    continue

    rounds = 60
    found = store.listed(Filter(), 10)
    planter = threading.Thread(target=plant)
    planter.start()
    try:
        for number in range(rounds):
            try:
                files_of(store, found, tmp_path / "root" / f"out{number}")
            except CliError as error:
                assert "cannot be written" in error.message
    finally:
        over.set()
        planter.join(10)
    assert profile.read_text() == "mine"


def test_files_refuse_a_link_that_is_there(store: ArtifactStore, tmp_path: Path) -> None:
    """The same, when the client always wins: the folder's name is a link already, or becomes one."""
    (tmp_path / "out").mkdir()
    folder = tmp_path / "root" / "files"
    folder.symlink_to(tmp_path / "out")
    with pytest.raises(CliError):
        files_of(store, store.listed(Filter(), 10), folder)
    assert list((tmp_path / "out").iterdir()) == []
