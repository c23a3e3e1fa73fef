"""process.stop: end a process or an agent's turn that a client started."""

from typing import Annotated

from pydantic import Field

from computer_linker.operations.command.sessions import listed_session, stop_session
from computer_linker.operations.command.stop import StopOptions, StoppedProcess, stop_process
from computer_linker.owner.process.found import beginning
from computer_linker.providers.agents.sessions import Session
from computer_linker.registry.owner import Context, Effect, Example, Positional, owner_operation


class StopInput(StopOptions):
    process: Annotated[str, Field(description="The process id, or the beginning of it."), Positional()]


class Stopped(StoppedProcess):
    process_id: str


@owner_operation(
    "process.stop",
    did="stopped[ {command}] ({process})[ in {inScope}]",
    effect=Effect.CHANGE,
    where="service",
    text=lambda result: [f"{result.process_id} {result.status}, exit code {result.exit_code}"],
    deadline_s=None,
    examples=[Example("Stop it.", {"input": {"process": "proc_01"}}, runs=False)],
)
async def process_stop(ctx: Context, input: StopInput) -> Stopped:
    """Stop a process, or an agent's turn, and everything it started."""
    found = beginning(ctx, input.process)
    if isinstance(found, Session):
        ctx.note(command=listed_session(found).command_preview, process=found.session_id, inScope=found.scope)
        stopped = await stop_session(ctx, found, input)
        return Stopped(**stopped.model_dump(), process_id=found.session_id)
    record = found.record
    ctx.note(command=record.command_preview, process=record.process_id, inScope=record.scope)
    stopped = await stop_process(ctx, found, input)
    return Stopped(**stopped.model_dump(), process_id=found.record.process_id)
