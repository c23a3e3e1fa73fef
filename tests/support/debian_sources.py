"""Debian's source packages, fetched by name into .tools/ under the project, once. Nothing of them is shipped."""

import shutil
import subprocess
from pathlib import Path

import pytest

from support.node import TOOLS, locked

PLACE = TOOLS / "debian-sources"
_DEADLINE_S = 300


def source(name: str) -> tuple[Path, Path]:
    """A package's upstream archive and Debian's own; skips the test where they cannot be had, naming what is missing."""
    folder = PLACE / name
    folder.mkdir(parents=True, exist_ok=True)
    with locked(TOOLS / "lock"):
        if not (folder / ".fetched").exists():
            _fetch(name, folder)
            (folder / ".fetched").touch()
    return next(folder.glob("*.orig.tar.*[!c]")), next(folder.glob("*.debian.tar.*"))


def _fetch(name: str, folder: Path) -> None:
    if shutil.which("apt-get") is None:
        pytest.skip("not installed: apt-get, which fetches Debian's source packages")
    argv = ["source", "--download-only", name]
    if _apt(argv, folder) and (_apt(["update"], folder) or _apt(argv, folder)):
        pytest.skip(f"not reached: Debian's source package {name}")


def _apt(words: list[str], folder: Path) -> int:
    """Run apt-get with state of its own, so that the machine's lists stay as they are; the exit code."""
    (PLACE / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (PLACE / "sources.list").write_text(_source_lines())
    settings = {
        "Dir::Etc::sourcelist": PLACE / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": PLACE / "lists",
        "Dir::Cache": PLACE / "cache",
        "Acquire::GzipIndexes": "true",
    }
    options = [f"-o{name}={value}" for name, value in settings.items()]
    argv = ["apt-get", "-qq", *options, *words]
    return subprocess.run(argv, cwd=folder, capture_output=True, timeout=_DEADLINE_S).returncode


def _source_lines() -> str:
    """The source packages of the release that this machine takes Debian's packages from; not those of its security updates."""
    form = "deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)"
    argv = ["apt-get", "indextargets", "--format", form, "Created-By: Packages", "Origin: Debian", "Label: Debian"]
    listed = subprocess.run(argv, capture_output=True, text=True, timeout=_DEADLINE_S)
    return "".join(f"{line}\n" for line in dict.fromkeys(listed.stdout.splitlines()))
