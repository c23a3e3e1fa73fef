"""A browser ends with its service, also with one that is killed."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.pages import FORM, left_running, needed
from support.road import folder_scope
from support.service import PROGRAM, end_service, environment, is_alive, lock_holder, wait_for, write_config

pytestmark = pytest.mark.clients


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    folder, root = tmp_path / "home", tmp_path / "root"
    write_config(folder, root, scopes=[folder_scope(root, allowedCommands=["agent-browser *"])])
    (root / "form.html").write_text(FORM)
    yield folder
    end_service(folder)


def op(home: Path, *words: str) -> dict[str, object]:
    path = f"{needed()}:{os.environ['PATH']}"
    argv = [*PROGRAM, "op", *words, "--json"]
    told = subprocess.run(
        argv, env=environment(home, PATH=path), capture_output=True, text=True, timeout=240, check=False
    )
    answer: dict[str, object] = json.loads(told.stdout)
    return answer


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_of_the_browser_outlives_the_service(home: Path, number: int) -> None:
    opened = op(home, "browser.open", "form.html")
    assert opened["ok"], opened
    assert any("chromium" in line for line in left_running(home))
    service = lock_holder(home)
    assert service is not None
    os.kill(service, number)
    wait_for(lambda: not [line for line in left_running(home) if "chrom" in line or "agent-browser" in line])
    # One that still ends takes the connection and never answers.
    wait_for(lambda: not is_alive(service))
    again = op(home, "browser.text")
    assert again["ok"] is False
    assert not (home / "browsers").exists() or not list((home / "browsers").iterdir())
