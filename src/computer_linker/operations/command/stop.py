"""command.stop: end a running process and everything it started."""

from typing import Annotated, Literal

from pydantic import Field

from computer_linker.operations.command.preview import show_process
from computer_linker.providers.processes.managed import Managed
from computer_linker.providers.processes.table import ProcessTable
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class StopOptions(Model):
    signal: Annotated[Literal["term", "int", "hup", "quit", "kill"], Field(description="How to ask it first.")] = "term"
    grace_seconds: Annotated[float, Field(ge=0, le=40, description="Then it is killed.")] = 5


class StoppedProcess(Model):
    status: Literal["running", "exited", "stopped", "lost"]
    exit_code: int | None
    signal: str | None


@operation(
    "command.stop",
    did="stopped",
    needs={Capability.PROCESS_MANAGE},
    effect=Effect.CHANGE,
    boundary="scoped-metadata",
    destructive=True,
    shows=show_process,
    aliases=("process.stop",),
    examples=[Example("Stop a process gently, then firmly.", {"target": "proc_0123"}, runs=False)],
)
async def command_stop(ctx: Context, target: str, options: StopOptions = StopOptions()) -> StoppedProcess:
    """Stop a process or an agent's turn and everything it started: the signal first, and a kill when the grace is over."""
    from computer_linker.operations.command.sessions import session_of, stop_session

    session = session_of(ctx, target)
    if session is not None:
        return await stop_session(ctx, session, options)
    return await stop_process(ctx, ctx.use(ProcessTable).find(target, ctx.principal, ctx.scope.id), options)


async def stop_process(ctx: Context, managed: Managed, options: StopOptions) -> StoppedProcess:
    """Stop it and wait until it has ended."""
    await managed.stop(options.signal, options.grace_seconds)
    while managed.is_running:
        await managed.changed(5)
    ctx.effect = "confirmed"
    if managed.refused:
        ctx.warnings.extend(managed.refused)
        ctx.note(refusedNames=len(managed.refused))
    record = managed.record
    return StoppedProcess(status=record.status, exit_code=record.exit_code, signal=record.signal)
