"""command.read: what a running process printed since a cursor."""

from typing import Annotated, Literal

from pydantic import Field

from computer_linker.errors import InvalidRequest
from computer_linker.model.base import Model
from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect
from computer_linker.providers.processes.managed import Managed
from computer_linker.providers.processes.ring import Chunk
from computer_linker.providers.processes.table import ProcessTable
from computer_linker.registry import Context, Example, operation, shapes


class ReadOptions(Model):
    cursor: Annotated[int, Field(ge=0, le=2**53, description="Where the last read ended; 0 is the beginning.")] = 0
    max_bytes: Annotated[int, Field(gt=0, le=1_000_000)] = 65_536
    wait_seconds: Annotated[
        float, Field(ge=0, le=50, description="Wait this long for new output when there is none.")
    ] = 0
    stream: Literal["all", "stdout", "stderr"] = "all"


class ProcessOutput(Model):
    status: Literal["running", "exited", "stopped", "lost"]
    exit_code: int | None
    signal: str | None
    chunks: list[Chunk]
    cursor: Annotated[int, Field(description="Give this to the next read; nothing is then skipped or repeated.")]
    dropped: Annotated[int, Field(description="Bytes before these that were no longer kept.")]


@operation(
    "command.read",
    needs={Capability.PROCESS_MANAGE},
    effect=Effect.OBSERVE,
    text=shapes.STREAM,
    boundary="scoped-metadata",
    aliases=("process.read",),
    examples=[
        Example(
            "Wait up to five seconds for new output.",
            {"target": "proc_0123", "options": {"waitSeconds": 5}},
            runs=False,
        )
    ],
)
async def command_read(ctx: Context, target: str, options: ReadOptions = ReadOptions()) -> ProcessOutput:
    """Read what a process printed since a cursor, waiting for more where asked to."""
    return await output_of(ctx, ctx.use(ProcessTable).find(target, ctx.principal, ctx.scope.id), options)


async def output_of(ctx: Context, managed: Managed, options: ReadOptions) -> ProcessOutput:
    """The output since the cursor."""
    if options.cursor > managed.ring.end:
        raise InvalidRequest("The cursor lies beyond the output there is.", field="cursor", end=managed.ring.end)
    if options.wait_seconds and managed.ring.end <= options.cursor and managed.is_running:
        await managed.changed(options.wait_seconds)
    limit = min(options.max_bytes, ctx.scope.policy.max_output_bytes)
    chunks, cursor, dropped = managed.ring.read(options.cursor, limit, options.stream)
    ctx.note(bytes=cursor - options.cursor)
    ctx.warnings.extend((*managed.warnings, *managed.refused))
    if managed.refused:
        ctx.note(refusedNames=len(managed.refused))
    record = managed.record
    return ProcessOutput(
        status=record.status,
        exit_code=record.exit_code,
        signal=record.signal,
        chunks=chunks,
        cursor=cursor,
        dropped=dropped,
    )
