"""The examples run as their first lines say."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from computer_linker.service.client_setup import AGENT_INSTRUCTIONS, FIRST_PROMPT
from support.service import TOKEN, Service, serving

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("examples"), token=TOKEN) as running:
        (running.root / "notes.txt").write_text("one\n# TODO: two\n")
        yield running


def run(service: Service, name: str, *words: str) -> list[str]:
    env = {**os.environ, "COMPUTER_LINKER_HOME": str(service.home), "COMPUTER_LINKER_TOKEN": TOKEN}
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *words], env=env, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_find_todos(service: Service) -> None:
    assert [json.loads(line) for line in run(service, "find_todos.py", "app")] == [
        {"path": "notes.txt", "line": 2, "text": "# TODO: two"}
    ]


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_change_and_take_back(service: Service, way: str) -> None:
    words = ["--url", service.url] if way == "http" else []
    assert run(service, "change_and_take_back.py", "app", "notes.txt", *words) == [
        "written: confirmed",
        "refused: conflict",
        "as before: True",
    ]
    assert (service.root / "notes.txt").read_text() == "one\n# TODO: two\n"


def test_json_api(service: Service) -> None:
    assert run(service, "json_api.py", service.url.removesuffix("/mcp"), "app") == [
        "test", "notes.txt", "path_out_of_scope",
    ]  # fmt: skip


def test_the_first_program_of_the_page_runs(service: Service, tmp_path: Path) -> None:
    page = (EXAMPLES.parent / "docs" / "how-to" / "use-from-python.md").read_text()
    program = tmp_path / "page.py"
    program.write_text(page.split("```python\n")[1].split("```")[0])
    env = {**os.environ, "COMPUTER_LINKER_HOME": str(service.home)}
    done = subprocess.run([sys.executable, program], env=env, capture_output=True, text=True, timeout=240)
    assert done.stdout.splitlines() == ["one", "# TODO: two", "", "path_out_of_scope"], done.stderr


def test_the_page_and_the_program_give_agents_the_same_instructions() -> None:
    page = (EXAMPLES.parent / "docs" / "how-to" / "instruct-an-agent.md").read_text()
    assert AGENT_INSTRUCTIONS in page and FIRST_PROMPT in page
