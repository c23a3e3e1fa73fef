"""process.list: every process and agent session that clients started."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from computer_linker.audit.wording import person, process_label
from computer_linker.operations.command.list import ListedProcess, listed_process
from computer_linker.operations.command.sessions import listed_session
from computer_linker.providers.agents.agents import Agents
from computer_linker.providers.agents.sessions import Session, Sessions, session_folder, settled
from computer_linker.providers.processes.records import Record, Records
from computer_linker.providers.processes.table import ProcessTable
from computer_linker.registry.owner import Context, Effect, Example, Model, Shown, Table, owner_operation


class OwnedProcess(ListedProcess):
    scope: str
    principal: str
    who: Annotated[str, Field(description="The client that started it, by the name it gives itself; or `owner`.")]


class Processes(Model):
    processes: list[OwnedProcess]


def _text(result: Processes) -> Iterator[Shown]:
    if not result.processes:
        yield "No processes."
        return
    rows = [
        (
            one.process_id,
            one.kind,
            one.scope,
            one.who,
            one.status,
            _ended(one),
            ", ".join(map(str, one.ports)),
            process_label(one.command_preview, one.name),
        )
        for one in result.processes
    ]
    yield Table(rows, ("process", "kind", "scope", "who", "status", "exit", "ports", "command"))


def _ended(one: OwnedProcess) -> str:
    return "" if one.exit_code is None else str(one.signal or one.exit_code)


@owner_operation("process.list", effect=Effect.OBSERVE, text=_text, examples=[Example("What runs?", {})])
async def process_list(ctx: Context) -> Processes:
    """List every process and agent session, in every scope, with what became of it."""
    table = ctx.services.peek(ProcessTable)
    folder = ctx.services.home / "processes"
    # This service has started none yet, or no service runs: existing processes are of an earlier run.
    records = table.every() if table is not None else Records(folder).load() if folder.is_dir() else []
    found = []
    for record in records:
        known = listed_process(record, None if table is None else table.running(record.process_id)).model_dump()
        found.append(_owned(known, record))
    for session in _sessions(ctx):
        known = listed_session(session).model_dump()
        found.append(_owned(known, session))
    return Processes(processes=sorted(found, key=lambda one: one.started_at, reverse=True))


def _owned(known: dict[str, Any], of: Record | Session) -> OwnedProcess:
    return OwnedProcess(**known, scope=of.scope, principal=of.principal, who=person(of.principal, of.client))


def _sessions(ctx: Context) -> list[Session]:
    agents = ctx.services.peek(Agents)
    folder = session_folder(ctx.services.home)
    if agents is not None:
        return agents.every()
    return [settled(session) for session in Sessions(folder).listed() if session.turns] if folder.is_dir() else []
