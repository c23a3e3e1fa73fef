"""Deletes old texts of agent sessions: prompts, messages and diffs are stored in plain text."""

import asyncio
import logging
import os
import shutil
import time
from pathlib import Path

import anyio.to_thread

log = logging.getLogger(__name__)

KEEP_S = 30 * 86_400.0
_EVERY_S = 86_400.0


def forget_old(place: Path, now: float) -> int:
    """Remove sessions, and what the agents themselves logged, not used for thirty days; returns how many were removed."""
    gone = 0
    for session in _entries(place / "sessions"):
        if _age(session, now, inside="session.json") > KEEP_S:
            shutil.rmtree(session, ignore_errors=True)
            gone += 1
    # Codex and Claude store their own record of each conversation, one JSON-lines file each.
    for folder, _, names in os.walk(place / "homes"):
        for name in names:
            path = Path(folder, name)
            if name.endswith(".jsonl") and _age(path, now) > KEEP_S:
                path.unlink(missing_ok=True)
                gone += 1
    return gone


async def forget_daily(place: Path) -> None:
    """Remove old sessions now and every day, until cancelled."""
    while True:
        try:
            await anyio.to_thread.run_sync(forget_old, place, time.time())
        except OSError as error:
            log.warning("old agent sessions could not be removed: %s", error)
        await asyncio.sleep(_EVERY_S)


def _entries(folder: Path) -> list[Path]:
    try:
        return [entry for entry in folder.iterdir() if entry.is_dir() and not entry.is_symlink()]
    except FileNotFoundError:
        return []


def _age(path: Path, now: float, inside: str = "") -> float:
    """Seconds since the last change; one without its record is as old as its folder."""
    for each in ([path / inside] if inside else []) + [path]:
        try:
            return now - each.lstat().st_mtime
        except FileNotFoundError:
            continue
    return 0.0
