"""command.read: what a running process printed since a cursor."""

from typing import Annotated, Literal

from pydantic import Field

from computer_linker.errors import InvalidRequest
from computer_linker.providers.processes.managed import Managed
from computer_linker.providers.processes.ring import Chunk
from computer_linker.providers.processes.table import ProcessTable
from computer_linker.providers.processes.waiting import Until, WaitEnd, Waiting
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

USUAL_WAIT_S = 10.0


class WaitOptions(Model):
    """What to wait for. Whatever comes first ends the wait, and so does the end of the process."""

    wait_for: Annotated[
        str | None, Field(min_length=1, max_length=1000, description="A regular expression to wait for in the output.")
    ] = None
    silence_seconds: Annotated[
        float | None, Field(gt=0, le=50, description="Wait until it has printed nothing for this long.")
    ] = None
    until_end: Annotated[bool, Field(description="Wait until the process has ended.")] = False

    def until(self) -> Until:
        return Until(self.wait_for, self.silence_seconds, self.until_end)


class ReadOptions(WaitOptions):
    cursor: Annotated[int, Field(ge=0, le=2**53, description="Where the last read ended; 0 is the beginning.")] = 0
    max_bytes: Annotated[int, Field(gt=0, le=1_000_000)] = 65_536
    wait_seconds: Annotated[
        float,
        Field(
            ge=0,
            le=50,
            description="Wait at most this long, for new output or for what is named here; left out beside that: 10.",
        ),
    ] = 0
    stream: Literal["all", "stdout", "stderr"] = "all"

    @property
    def longest_wait(self) -> float:
        """The seconds to wait: what was asked for, and some where only what to wait for was."""
        is_chosen = "wait_seconds" in self.model_fields_set or self.until().is_any_output
        return self.wait_seconds if is_chosen else USUAL_WAIT_S


class ProcessOutput(Model):
    status: Literal["running", "exited", "stopped", "lost"]
    exit_code: int | None
    signal: str | None
    chunks: list[Chunk]
    cursor: Annotated[int, Field(description="Give this to the next read; nothing is then skipped or repeated.")]
    dropped: Annotated[int, Field(description="Bytes before these that were no longer kept.")]
    waited: Annotated[WaitEnd | None, Field(description="What ended the wait; null without one.")] = None
    waits_for_input: Annotated[
        bool | None, Field(description="True while the program is blocked reading its input; null when unknown.")
    ] = None


@operation(
    "command.read",
    did="read output of",
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
    """Read what a process or an agent session printed since a cursor.

    With `waitSeconds` it waits: for new output, or for `waitFor`, for `silenceSeconds`, or for its end. The echo of what was
    typed into a terminal does not count.
    """
    from computer_linker.operations.command.sessions import session_of, session_output

    session = session_of(ctx, target)
    if session is not None:
        return await session_output(ctx, session, options)
    return await output_of(ctx, ctx.use(ProcessTable).find(target, ctx.principal, ctx.scope.id), options)


async def output_of(ctx: Context, managed: Managed, options: ReadOptions) -> ProcessOutput:
    """The output since the cursor."""
    if options.cursor > managed.ring.end:
        raise InvalidRequest("The cursor lies beyond the output there is.", field="cursor", end=managed.ring.end)
    waited = None
    if options.longest_wait:
        waited = await ctx.use(Waiting).wait(managed, options.until(), options.cursor, options.longest_wait)
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
        waited=waited,
        waits_for_input=managed.waits_for_input(),
    )
