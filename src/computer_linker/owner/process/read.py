"""process.read: what a process or an agent session has printed."""

from typing import Annotated

from pydantic import Field

from computer_linker.operations.command.read import ProcessOutput, ReadOptions, output_of
from computer_linker.operations.command.sessions import session_output
from computer_linker.owner.process.found import beginning
from computer_linker.providers.agents.sessions import Session
from computer_linker.registry.owner import Context, Effect, Example, owner_operation


class ReadInput(ReadOptions):
    process: Annotated[str, Field(description="The process id, or the beginning of it.")]


@owner_operation(
    "process.read",
    effect=Effect.OBSERVE,
    where="service",
    is_derived=False,
    deadline_s=None,
    examples=[
        Example("Read on, waiting up to five seconds.", {"input": {"process": "proc_01", "waitSeconds": 5}}, runs=False)
    ],
)
async def process_read(ctx: Context, input: ReadInput) -> ProcessOutput:
    """Print what a process or an agent session has printed; its standard error goes to standard error."""
    found = beginning(ctx, input.process)
    return await (session_output(ctx, found, input) if isinstance(found, Session) else output_of(ctx, found, input))
