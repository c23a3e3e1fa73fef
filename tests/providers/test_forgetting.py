"""Agent sessions: their texts go after thirty days without use, at the start of a service."""

import os
import time
from pathlib import Path

import pytest

from computer_linker.providers.agents.sessions import KEEP_S, forget_old
from support.road import Road
from support.waiting import until

pytestmark = pytest.mark.anyio
DAY = 86_400


def session(place: Path, name: str, age_s: float) -> Path:
    """A session as it lies on the disk, last used so long ago."""
    folder = place / "sessions" / name
    folder.mkdir(parents=True, mode=0o700)
    record = folder / "session.json"
    record.write_text("the prompt")
    (folder / "events.jsonl").write_text("what was said")
    os.utime(record, (time.time() - age_s,) * 2)
    return folder


async def wait_until_gone(path: Path) -> None:

    await until(lambda: not path.exists())


async def test_a_service_forgets_at_its_start_what_nobody_used_for_thirty_days(tmp_path: Path) -> None:
    place = tmp_path / "home" / "agents"
    old = session(place, "codex_" + "0" * 24, KEEP_S + DAY)
    new = session(place, "codex_" + "1" * 24, KEEP_S - DAY)
    rollout = place / "homes" / "app" / "sessions" / "2026" / "rollout.jsonl"
    login = place / "homes" / "app" / "auth.json"
    rollout.parent.mkdir(parents=True)
    for file in (rollout, login):
        file.write_text("text")
        os.utime(file, (time.time() - KEEP_S - DAY,) * 2)
    async with Road.open(tmp_path):
        await wait_until_gone(old)
        await wait_until_gone(rollout)
    assert (new / "session.json").read_text() == "the prompt" and login.exists()


def test_a_link_leads_nowhere_and_a_half_made_session_goes_by_its_folder(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep.jsonl").write_text("keep")
    place = tmp_path / "agents"
    half = place / "sessions" / "codex_half"
    half.mkdir(parents=True)
    (place / "sessions" / "codex_link").symlink_to(outside)
    (place / "homes").mkdir()
    (place / "homes" / "link").symlink_to(outside)
    assert forget_old(place, time.time() + KEEP_S + DAY) == 1
    assert not half.exists() and (outside / "keep.jsonl").read_text() == "keep"
    assert forget_old(tmp_path / "nothing", time.time()) == 0
