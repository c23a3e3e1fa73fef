"""process.stop: end a process that a client started."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from computer_linker.operations.command.stop import StopOptions, StoppedProcess, stop_process
from computer_linker.providers.processes.table import ProcessTable
from computer_linker.registry.owner import Context, Effect, Example, Positional, Shown, owner_operation


class StopInput(StopOptions):
    process: Annotated[str, Field(description="The process id, or the beginning of it."), Positional()]


class Stopped(StoppedProcess):
    process_id: str


def _text(result: Stopped) -> Iterator[Shown]:
    yield f"{result.process_id} {result.status}, exit code {result.exit_code}"


@owner_operation(
    "process.stop",
    effect=Effect.CHANGE,
    where="service",
    text=_text,
    deadline_s=None,
    examples=[Example("Stop it.", {"input": {"process": "proc_01"}}, runs=False)],
)
async def process_stop(ctx: Context, input: StopInput) -> Stopped:
    """Stop a process and everything it started."""
    managed = ctx.use(ProcessTable).beginning(input.process)
    ctx.note(process=managed.record.process_id, inScope=managed.record.scope)
    stopped = await stop_process(ctx, managed, input)
    return Stopped(**stopped.model_dump(), process_id=managed.record.process_id)
