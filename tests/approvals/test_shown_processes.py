"""What an approver is shown of a process: the program, not a handle or the name that its client gave it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.operations.codex.preview import prompt_lines
from computer_linker.owner.process.list import Processes, process_list
from computer_linker.registry.owner import Table
from computer_linker.watch.tables import running_rows
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio

PROGRAM = ["python3", "-u", "asks.py"]
ASKS = "print('Delete everything? [y/N]', flush=True)\nsaid = input()\nopen('answer', 'w').write(said)\n"


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    root = tmp_path / "root"
    scopes = [folder_scope(root, "app", confirm="all"), folder_scope(root, "free")]
    async with Road.open(tmp_path, scopes) as opened:
        (opened.root / "asks.py").write_text(ASKS)
        yield opened


def people(road: Road) -> Approvals:
    return road.app.services.use(Approvals)


async def allowed(road: Road, op: str, target: str, **parts: Any) -> tuple[str, dict[str, Any]]:
    """What a person is shown of a request, and its answer once they said yes."""
    assert await road.code(op, target, **parts) == "confirm_required"
    [asked] = people(road).waiting()
    assert people(road).answer(asked.id, "yes")
    return asked.text, await road.data(op, target, **parts)


async def test_what_is_typed_and_stopped_is_shown_with_its_program_and_what_it_printed(road: Road) -> None:
    command = {"input": {"command": PROGRAM}, "options": {"name": "npm test"}}
    _, started = await allowed(road, "command.start", ".", **command)
    process = started["processId"]
    await road.data("command.read", process, options={"waitFor": "y/N", "waitSeconds": 20})
    for op, parts in (("command.stop", {}), ("command.send", {"input": {"text": "n\n"}})):
        assert await road.code(op, process, **parts) == "confirm_required"
        [asked] = people(road).waiting()
        assert "python3 -u asks.py" in asked.text and "| Delete everything? [y/N]" in asked.text, asked.text
        people(road).ledger.withdraw(asked)
    assert not (road.root / "answer").exists()
    shown, _ = await allowed(road, "command.send", process, input={"text": "n\n"}, options={"untilEnd": True})
    assert "npm test" not in shown
    assert (road.root / "answer").read_text() == "n"


async def test_a_yes_to_typing_is_not_used_for_a_process_that_ended(road: Road) -> None:
    started = await road.data("command.start", ".", scope="free", input={"command": PROGRAM})
    process = started["processId"]
    parts: dict[str, Any] = {"input": {"text": "n\n"}}
    await road.data("command.read", process, scope="free", options={"waitFor": "y/N", "waitSeconds": 20})
    assert await road.code("command.send", process, **parts) == "process_not_found", "of another scope"
    assert people(road).waiting() == [], "what does not exist is not asked about"


TWICE = """
import os, sys
print("Keep the log?", flush=True)
if sys.argv[1] == "yes":
    while not os.path.exists("go"):
        os.sched_yield()
else:
    input()
print("Delete all?", flush=True)
open("all", "w").write(input())
"""


@pytest.mark.parametrize("answer", ["yes", "same"])
async def test_a_yes_to_typing_is_not_used_at_another_prompt(road: Road, answer: Literal["yes", "same"]) -> None:
    """Found: a yes to `y` at one question, once or standing, typed it at the next one."""
    (road.root / "twice.py").write_text(TWICE)
    _, started = await allowed(road, "command.start", ".", input={"command": ["python3", "twice.py", answer]})
    process = started["processId"]
    await road.data("command.read", process, options={"waitFor": "log", "waitSeconds": 20})
    parts: dict[str, Any] = {"input": {"text": "y\n"}}
    assert await road.code("command.send", process, **parts) == "confirm_required"
    [asked] = people(road).waiting()
    assert people(road).answer(asked.id, answer)
    if answer == "same":
        await road.data("command.send", process, **parts)
    (road.root / "go").touch()
    await road.data("command.read", process, options={"waitFor": "all", "waitSeconds": 20})
    assert await road.code("command.send", process, **parts) == ("conflict" if answer == "yes" else "confirm_required")
    assert not (road.root / "all").exists() or not (road.root / "all").read_text()


async def test_a_process_is_listed_by_its_command_whatever_it_is_called(road: Road) -> None:
    given = {"input": {"command": PROGRAM}, "options": {"name": "npm test"}}
    await road.data("command.start", ".", scope="free", **given)
    listed = (await road.data("command.list", scope="free"))["processes"]
    [row] = running_rows([{**listed[0], "scope": "free", "principal": "local:tester", "who": "tester"}])
    assert str(row.cells[-1]) == 'python3 -u asks.py (called "npm test")'
    result = Processes.from_wire(
        {"processes": [{**listed[0], "scope": "free", "principal": "local:tester", "who": "tester"}]}
    )
    [table] = process_list.command.text(result) if process_list.command and process_list.command.text else []
    assert isinstance(table, Table) and table.rows[0][-1] == 'python3 -u asks.py (called "npm test")'


def test_lines_of_a_prompt_cannot_pass_for_the_service_own() -> None:
    lines = prompt_lines("do it\nIt goes on with the session x.\n" + "more\n" * 300)
    assert all(line.startswith("| ") for line in lines[:-1]) and len(lines) == 201
    assert lines[-1] == "… 102 more lines; all of it is in the exact request below."
