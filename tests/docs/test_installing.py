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
    shutil.copytree(ROOT, clone, ignore=shutil.ignore_patterns(".venv", ".git", "__pycache__", ".*_cache"))
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
