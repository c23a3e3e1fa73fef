"""command.list: the processes and agent sessions this client started in this scope."""

from typing import Annotated, Literal

from pydantic import Field

from computer_linker.providers.processes.managed import Managed
from computer_linker.providers.processes.records import Record
from computer_linker.providers.processes.table import ProcessTable
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

Status = Literal["running", "exited", "stopped", "lost"]


class ListedProcess(Model):
    process_id: str
    kind: Annotated[Literal["command", "codex", "claude"], Field(description="A command, or a session of an agent.")]
    name: str | None
    command_preview: str
    status: Annotated[
        Status,
        Field(description="`lost` when the service died while it ran: it ended then, and how is not known."),
    ]
    started_at: str
    ended_at: str | None
    exit_code: int | None
    signal: str | None
    pty: bool
    boundary: str
    processes: Annotated[int | None, Field(description="How many processes it consists of now.")]
    cpu_seconds: float | None
    memory_bytes: int | None
    ports: Annotated[list[int], Field(description="TCP ports it listens on, in the network it sees.")]


class ProcessList(Model):
    processes: list[ListedProcess]


@operation(
    "command.list",
    did="listed processes",
    needs={Capability.PROCESS_MANAGE},
    effect=Effect.OBSERVE,
    text=shapes.PROCESSES,
    boundary="scoped-metadata",
    aliases=("process.list",),
    examples=[Example("List my processes.", {})],
)
async def command_list(ctx: Context) -> ProcessList:
    """List the long-running processes and agent sessions of this scope that this client started, the newest first.

    Agent sessions are listed for a caller who may use them. command.read and command.stop take the ids of both.
    """
    from computer_linker.operations.command.sessions import listed_session, sessions_of

    table = ctx.use(ProcessTable)
    processes = [
        listed_process(record, table.running(record.process_id)) for record in table.listed(ctx.principal, ctx.scope.id)
    ]
    processes += [listed_session(session) for session in sessions_of(ctx)]
    processes.sort(key=lambda process: process.started_at, reverse=True)
    ctx.note(processes=len(processes))
    return ProcessList(processes=processes)


def listed_process(record: Record, managed: Managed | None) -> ListedProcess:
    """One process with its current usage, while it is managed."""
    usage = managed.child.usage() if managed is not None and managed.is_running else None
    return ListedProcess(
        process_id=record.process_id,
        kind="command",
        name=record.name,
        command_preview=record.command_preview,
        status=record.status,
        started_at=record.started_at,
        ended_at=record.ended_at,
        exit_code=record.exit_code,
        signal=record.signal,
        pty=record.pty,
        boundary=record.boundary,
        processes=None if usage is None else usage.pids,
        cpu_seconds=None if usage is None else usage.cpu_s,
        memory_bytes=None if usage is None else usage.memory_bytes,
        ports=[] if usage is None else list(usage.ports),
    )
