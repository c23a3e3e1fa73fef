"""The wheel and the sdist: complete, and working in an environment that has nothing but them (001-002)."""

import json
import os
import re
import subprocess
import sys
import tarfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker import __version__
from support.release_check import build, metadata_of, problems
from support.service import end_service, rpc

ROOT = Path(__file__).parents[2]
HEAVY = ("mcp", "starlette", "uvicorn", "httpx2", "typer", "rich", "numpy", "PIL", "textual")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(ROOT, tmp_path_factory.mktemp("dist"))


def test_wheel_and_sdist_are_complete_and_describe_themselves(built: tuple[Path, Path]) -> None:
    assert problems(ROOT, *built, is_draft=True, by_hand=False) == []
    assert metadata_of(built[0])["Version"] == [__version__]


def test_the_sdist_builds_the_same_wheel(built: tuple[Path, Path], tmp_path: Path) -> None:
    wheel, sdist = built
    with tarfile.open(sdist) as packed:
        packed.extractall(tmp_path / "source", filter="data")
    (unpacked,) = (tmp_path / "source").iterdir()
    again, _ = build(unpacked, tmp_path / "dist")
    assert again.read_bytes() == wheel.read_bytes()


def test_the_sdk_loads_without_the_servers_and_the_command_lines_parts() -> None:
    code = (
        "import sys; from computer_linker.client import AsyncClient, Client, Question; "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=True)
    assert done.stdout.strip() == "[]"


class Installed:
    """A clean environment with the wheel and what it declares, in the versions of the lock."""

    def __init__(self, folder: Path, package: Path) -> None:
        self.folder, self.home = folder, folder / "home"
        venv.create(folder / "venv", with_pip=True)
        locked = re.findall(
            r"^([A-Za-z0-9_.-]+==\S+)(.*?)\\?$", (ROOT / "requirements/base.txt").read_text(), re.MULTILINE
        )
        constraints = folder / "constraints.txt"
        constraints.write_text("\n".join(f"{name}{condition}" for name, condition in locked))
        self.run("pip", "install", "-q", "--disable-pip-version-check", "-c", str(constraints), str(package))

    def run(self, program: str, *words: str, stdin: str = "") -> str:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "COMPUTER_LINKER", "VIRTUAL_ENV"))
        }
        done = subprocess.run(
            [str(self.folder / "venv/bin" / program), *words], input=stdin, capture_output=True, text=True, timeout=280,
            check=False, cwd=self.folder, env={**kept, "COMPUTER_LINKER_HOME": str(self.home)},
        )  # fmt: skip
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout


@pytest.fixture(scope="module")
def installed(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    clean = Installed(tmp_path_factory.mktemp("clean"), built[0])
    yield clean
    end_service(clean.home)


def test_an_installed_wheel_works_from_setup_to_the_sdk(installed: Installed) -> None:
    assert installed.run("computer-linker", "--version").split()[-1] == __version__
    where = installed.run("python", "-c", "import computer_linker; print(computer_linker.__file__)")
    assert Path(where.strip()).is_relative_to(installed.folder / "venv")
    tried: dict[str, Any] = json.loads(installed.run("computer-linker", "self-test", "--json"))
    assert tried["ok"], tried
    folder = installed.folder / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("hello from a wheel\n")
    installed.run("computer-linker", "setup", str(folder))
    status = json.loads(installed.run("computer-linker", "status", "--json"))
    assert [scope["id"] for scope in status["scopes"]] == ["project"]
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    answer = installed.run("computer-linker", "stdio", stdin=json.dumps(rpc(1, "initialize", params)) + "\n")
    assert json.loads(answer.splitlines()[0])["result"]["serverInfo"]["version"] == __version__
    code = (
        "from computer_linker.client import Client\n"
        "with Client.over_socket() as linker:\n"
        "    print(linker.scope('project').call('file.read', 'notes.txt').data['content'], end='')"
    )
    assert installed.run("python", "-c", code) == "hello from a wheel\n"
