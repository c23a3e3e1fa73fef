"""The page on adding an operation, taken literally: each code block becomes one file, and everything else follows from it."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import computer_linker
from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.request import Answer, ApprovalRequest
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.model.envelope import Call, Reply
from computer_linker.registry.catalog import collect
from support.road import LOCAL, Road, folder_scope
from support.service import serving, write_config

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
PAGE = HOW_TO / "add-an-operation.md"
OWNERS_PAGE = HOW_TO / "add-an-owners-command.md"
TEXT, SORTED = "pear\napple\nfig\n", "apple\nfig\npear\n"


def put_operations_of_the_page(operations: Path, page: Path = PAGE) -> list[str]:
    """Write each block to the file that its first line names; the names of the operations."""
    names = []
    for code in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        noun, verb = code.removeprefix('"""').split(":")[0].split(".")
        folder = operations / noun
        if not folder.exists():
            folder.mkdir()
            (folder / "__init__.py").write_text('"""Texts."""\n')
        (folder / f"{verb}.py").write_text(code)
        names.append(f"{noun}.{verb}")
    return names


class Program:
    """Computer Linker with the page's operations in its package, as commands on a state folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.home, self.root, self.code = folder / "home", folder / "root", folder / "code"
        package = self.code / "computer_linker"
        source = Path(computer_linker.__file__).parent
        shutil.copytree(source, package)
        self.names = put_operations_of_the_page(package / "operations")
        self.commands = put_operations_of_the_page(package / "owner", OWNERS_PAGE)
        write_config(self.home, self.root)
        (self.root / "notes.txt").write_text(TEXT)

    def run(self, module: str, *words: str) -> str:
        env = {**os.environ, "COMPUTER_LINKER_HOME": str(self.home), "PYTHONPATH": str(self.code)}
        done = subprocess.run(
            [sys.executable, "-P", "-m", module, *words], env=env, capture_output=True, text=True, timeout=120, check=False
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def op(self, *words: str) -> Any:
        return json.loads(self.run("computer_linker", "op", *words, "--scope", "app", "--json"))

    @property
    def text(self) -> str:
        return (self.root / "notes.txt").read_text()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder = tmp_path_factory.mktemp("adding")
    made = Program(folder)
    with serving(folder, env={"PYTHONPATH": str(made.code)}):
        yield made


def test_the_page_has_one_that_reads_and_one_that_changes(program: Program) -> None:
    assert program.names == ["text.count", "text.sort"]


def test_both_are_in_the_help_and_the_reference(program: Program, tmp_path: Path) -> None:
    listed = program.run("computer_linker", "op")
    assert all(name in listed for name in program.names)
    assert "Sort the lines of one text file." in program.run("computer_linker", "op", "text.sort", "--help")
    program.run("computer_linker.registry.reference", str(tmp_path / "reference"))
    page = (tmp_path / "reference" / "text.md").read_text()
    assert all(name in page for name in program.names)
    assert "`text.sort`" in (tmp_path / "reference" / "capabilities.md").read_text()


def test_the_one_that_changes_is_confirmed_audited_and_undone(program: Program) -> None:
    assert program.op("text.count", "notes.txt")["data"] == {"lines": 3}
    done = program.op("text.sort", "notes.txt")
    assert (done["ok"], done["effect"], done["data"]) == (True, "confirmed", {"path": "notes.txt", "lines": 3}), done
    assert program.text == SORTED
    events = program.op("history.timeline")["data"]["events"]
    [event] = [one for one in events if one["operationId"] == done["operationId"]]
    assert (event["op"], event["ok"], event["effect"]) == ("text.sort", True, "confirmed"), event
    undone = program.op("file.undo", "--input", f"operationId={done['operationId']}")
    assert undone["effect"] == "confirmed" and program.text == TEXT, undone


def test_the_owners_command_is_in_the_help_and_the_reference(program: Program, tmp_path: Path) -> None:
    assert program.commands == ["scope.rename"]
    assert "rename" in program.run("computer_linker", "scope", "--help")
    assert "A name for people." in program.run("computer_linker", "scope", "rename", "--help")
    program.run("computer_linker.registry.reference", str(tmp_path))
    program.run("computer_linker.cli.reference", str(tmp_path))
    assert "## scope.rename" in (tmp_path / "owner.md").read_text()
    assert "computer-linker scope rename [OPTIONS] SCOPE NAME" in (tmp_path / "cli.md").read_text()


def test_the_owners_command_is_audited_and_undone(program: Program) -> None:
    def name() -> str:
        scopes = json.loads((program.home / "config.json").read_text())["scopes"]
        return str(scopes[0].get("name"))

    before = name()
    renamed = program.run("computer_linker", "scope", "rename", "app", "My app")
    assert renamed == "Scope app is now called My app.\n" and name() == "My app"
    history = json.loads(program.run("computer_linker", "history", "--query", "op:scope.rename", "--json"))
    [event] = history["events"]
    assert (event["ok"], event["effect"], event["summary"]["scope"]) == (True, "confirmed", "app"), event
    assert "as it was" in program.run("computer_linker", "undo", event["operationId"])
    assert name() == before


@pytest.fixture
async def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Road, Dispatcher]]:
    """The page's operations where a person is asked before every effect."""
    package = tmp_path / "operations_of_the_page"
    package.mkdir()
    (package / "__init__.py").write_text('"""Operations."""\n')
    put_operations_of_the_page(package)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.startswith("operations_of_the_page")]:
        monkeypatch.delitem(sys.modules, name)
    catalog = collect(import_module("operations_of_the_page"))
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all")]) as road:
        (road.root / "notes.txt").write_text(TEXT)
        yield road, Dispatcher(catalog, road.app.services, road.app.computer, road.app.dispatcher.audit)


async def sort_with(asked: tuple[Road, Dispatcher], during: Any) -> tuple[str, Reply]:
    """Sort with a person who says yes after `during`; what they were shown, and the reply."""
    road, dispatcher = asked
    shown: list[str] = []

    async def person(question: ApprovalRequest) -> Answer | None:
        assert question.about is not None
        shown.extend(question.about.lines)
        during(road.root / "notes.txt")
        return "yes"

    async with road.app.services.use(Approvals).attached("tests", person):
        reply = await dispatcher.call(Call("app", "text.sort", "notes.txt"), LOCAL)
    return "\n".join(shown), reply


@pytest.mark.anyio
async def test_a_person_is_shown_the_difference_before_they_say_yes(asked: tuple[Road, Dispatcher]) -> None:
    texts: list[str] = []
    shown, reply = await sort_with(asked, lambda path: texts.append(path.read_text()))
    assert "-pear" in shown and "+pear" in shown, shown
    assert texts == [TEXT], "nothing changes for the preview"
    assert reply.envelope["effect"] == "confirmed"
    assert (asked[0].root / "notes.txt").read_text() == SORTED


@pytest.mark.anyio
async def test_a_yes_is_bound_to_what_was_shown(asked: tuple[Road, Dispatcher]) -> None:
    """The new text would be another than the one they saw."""
    _, reply = await sort_with(asked, lambda path: path.write_text("zucchini\nbean\n"))
    error = reply.envelope["error"]
    assert (error["code"], error["details"]["changed"]) == ("conflict", ["notes.txt"]), error
    assert "effect" not in reply.envelope
    assert (asked[0].root / "notes.txt").read_text() == "zucchini\nbean\n"
