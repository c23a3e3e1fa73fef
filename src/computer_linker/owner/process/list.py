"""process.list: every process that clients started."""

from collections.abc import Iterator

from computer_linker.operations.command.list import ListedProcess, listed_process
from computer_linker.providers.processes.records import Records
from computer_linker.providers.processes.table import ProcessTable
from computer_linker.registry.owner import Context, Effect, Example, Model, Shown, Table, owner_operation


class OwnedProcess(ListedProcess):
    scope: str
    principal: str
    kind: str


class Processes(Model):
    processes: list[OwnedProcess]


def _text(result: Processes) -> Iterator[Shown]:
    if not result.processes:
        yield "No processes."
        return
    rows = [
        (
            one.process_id,
            one.scope,
            one.status,
            _ended(one),
            ", ".join(map(str, one.ports)),
            one.name or one.command_preview,
        )
        for one in result.processes
    ]
    yield Table(rows, ("process", "scope", "status", "exit", "ports", "command"))


def _ended(one: OwnedProcess) -> str:
    return "" if one.exit_code is None else str(one.signal or one.exit_code)


@owner_operation("process.list", effect=Effect.OBSERVE, text=_text, examples=[Example("What runs?", {})])
async def process_list(ctx: Context) -> Processes:
    """List every process, in every scope, with what became of it."""
    table = ctx.services.peek(ProcessTable)
    folder = ctx.services.home / "processes"
    # This service has started none yet, or no service runs: existing processes are of an earlier run.
    records = table.every() if table is not None else Records(folder).load() if folder.is_dir() else []
    found = []
    for record in records:
        known = listed_process(record, None if table is None else table.running(record.process_id)).model_dump()
        found.append(OwnedProcess(**known, scope=record.scope, principal=record.principal, kind=record.kind))
    return Processes(processes=found)
