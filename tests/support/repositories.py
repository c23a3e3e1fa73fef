"""Real repositories for tests, made by the git program with nobody's settings but the test's."""

import os
import subprocess
from pathlib import Path

_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_AUTHOR_DATE": "2026-01-02T03:04:05+00:00",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05+00:00",
}


def git(folder: Path, *args: str, **extra: str) -> str:
    """Run git as a person would, and give what it says."""
    done = subprocess.run(
        ["git", *args],
        cwd=folder,
        env={**_ENVIRONMENT, **extra},
        capture_output=True,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return os.fsdecode(done.stdout).rstrip("\n")


def repository(folder: Path) -> Path:
    """A repository with one commit (a.txt, sub/x.txt) and one unstaged change in a.txt."""
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("one\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "x.txt").write_text("x\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    (folder / "a.txt").write_text("one\ntwo\n")
    return folder


def trap(folder: Path, marker: Path) -> Path:
    """A program that leaves a mark when it runs."""
    script = folder / "x.sh"
    script.write_text(f"#!/bin/sh\ntouch '{marker}'\ncat\n")
    script.chmod(0o755)
    return script
