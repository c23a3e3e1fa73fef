"""`make install` and `make uninstall`, as the page on installing has them. It needs the package registry."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from computer_linker import __version__

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "install-upgrade-uninstall.md"


def run(words: list[str], folder: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False
    )


def test_the_page_names_what_the_makefile_has() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z]+)", PAGE.read_text())) <= targets


def test_an_installed_program_is_on_the_path_and_goes_without_a_trace(tmp_path: Path) -> None:
    if run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(tmp_path / "got"), "typer"],
        tmp_path,
        dict(os.environ),
    ).returncode:
        pytest.skip("no package registry can be reached")
    person, clone = tmp_path / "person", tmp_path / "clone"
    person.mkdir()
    shutil.copytree(ROOT, clone, ignore=shutil.ignore_patterns(".venv", ".git", ".tools", "__pycache__", ".*_cache"))
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("COMPUTER_LINKER", "XDG_", "VIRTUAL"))
    }
    env |= {"HOME": str(person), "PATH": f"{person / '.local' / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    done = run(["make", "install", f"PYTHON={sys.executable}"], clone, env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "export PATH" not in done.stdout, "it is on the PATH already"
    shutil.rmtree(clone / "src")
    assert run(["computer-linker", "--version"], person, env).stdout.strip() == __version__
    tried = run(["computer-linker", "self-test"], person, env)
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert run(["make", "uninstall"], clone, env).returncode == 0
    left = [path.name for path in (person / ".local" / "bin").iterdir()]
    assert left == [] and not (person / ".local" / "share" / "computer-linker").exists()


def packages_script(tmp_path: Path, **env: str) -> tuple[str, list[str]]:
    """What `make test` runs for Debian packages, on a machine that has none of them: what it says, and what it calls."""
    programs, called = tmp_path / "bin", tmp_path / "called"
    programs.mkdir()
    for name, body in (("apt-get", f'echo "$@" >> {called}'), ("dpkg-query", "exit 1"), ("id", "echo 0")):
        (programs / name).write_text(f"#!/bin/sh\n{body}\n")
        (programs / name).chmod(0o755)
    found = {"PATH": f"{programs}:/usr/bin:/bin", **env}
    done = run(["sh", str(ROOT / "tests" / "install-debian-packages.sh")], tmp_path, found)
    assert done.returncode == 0, done.stderr
    return done.stdout, called.read_text().splitlines() if called.exists() else []


def test_debian_packages_are_named_before_they_are_installed_and_left_out_on_request(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    said, called = packages_script(tmp_path / "one")
    assert said.startswith("Installing Debian packages") and "NO_APT=1" in said and "tmux" in said
    assert any(line.startswith("install ") and "tmux" in line for line in called)
    said, called = packages_script(tmp_path / "two", NO_APT="1")
    assert "nothing is installed" in said and called == []
