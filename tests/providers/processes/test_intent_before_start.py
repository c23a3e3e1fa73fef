"""A program starts after its intent is durable, and not at all where it cannot be."""

from pathlib import Path

import pytest

from computer_linker.audit.faults import AuditUnavailable
from computer_linker.audit.store import AuditStore
from computer_linker.providers.processes.runner import Limits, Runner
from computer_linker.providers.sandbox.boundary import SpawnPlan
from support.launching import processes_of, waiting_child
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio


def scope(tmp_path: Path, sandbox: str, *commands: str) -> dict[str, object]:
    (tmp_path / "root").mkdir()
    return folder_scope(tmp_path / "root", sandbox=sandbox, allowedCommands=list(commands))


@pytest.mark.parametrize("sandbox", ["off", "auto"])
async def test_the_history_knows_that_the_intent_is_durable(tmp_path: Path, sandbox: str) -> None:
    async with Road.open(tmp_path, [scope(tmp_path, sandbox, "*")]) as road:
        await road.data("command.run", ".", input={"command": ["true"]})
        journal = road.app.services.use(AuditStore).journal
        before = journal.head.number
        await road.data("command.run", ".", input={"command": ["true"]})
        assert journal.head.synced == before + 1
        assert journal.head.number == before + 2


async def test_nothing_runs_when_the_intent_cannot_be_made_durable(road: Road) -> None:
    made = road.root / "made"

    async def fails() -> None:
        raise AuditUnavailable("The disk is gone.")

    runner = road.app.services.use(Runner)
    plan = SpawnPlan(argv=("/usr/bin/touch", str(made)))
    with pytest.raises(AuditUnavailable):
        await runner.run(plan, {}, Limits(10, 1000), before_start=fails)
    assert not made.exists()
    assert (await runner.run(plan, {}, Limits(10, 1000))).exit_code == 0 and made.exists()


async def test_a_refused_command_leaves_the_process_to_the_next(tmp_path: Path) -> None:
    async with Road.open(tmp_path, [scope(tmp_path, "off", "true")]) as road:
        await road.data("command.run", ".", input={"command": ["true"]})
        processes = processes_of(road.app.computer)
        pid = await waiting_child(processes)
        refused = await road.call("command.run", ".", input={"command": ["touch", "made"]})
        assert refused["error"]["code"] == "permission_denied"
        assert not (tmp_path / "root" / "made").exists()
        assert [ready.pid for ready in processes._ready] == [pid]
