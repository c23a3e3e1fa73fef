"""command.start: start a program that keeps running."""

from typing import Annotated, Literal

from pydantic import Field

from computer_linker.computer.facets.processes import PtySize
from computer_linker.operations.command.preview import show_command
from computer_linker.operations.command.undo import CommandUndo
from computer_linker.operations.command.view import CommandView, ViewOption, view_for
from computer_linker.providers.processes.managed import Owner
from computer_linker.providers.processes.prepare import Preparation, Prepared
from computer_linker.providers.processes.request import request_of
from computer_linker.providers.processes.table import ProcessTable
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

_FIRST_LOOK_S = 0.002
"""Long enough for the launcher to report a program that cannot be executed; every start waits for it."""


class StartInput(Model):
    command: Annotated[str | list[str], Field(description="One plain command line, or an argv array.")]
    env: Annotated[dict[str, str], Field(max_length=64, description="Variables to set, as far as policy allows.")] = {}


class StartOptions(Model):
    pty: Annotated[bool, Field(description="Give it a terminal, as an interactive program wants.")] = False
    cols: Annotated[int, Field(ge=1, le=1000)] = 120
    rows: Annotated[int, Field(ge=1, le=1000)] = 40
    name: Annotated[str | None, Field(pattern=r"^[\w .:/-]{1,64}$", description="A label for command.list.")] = None
    view: ViewOption = False
    undo: Annotated[
        bool,
        Field(
            description="Make undoable by file.undo, once it has ended, what changed in the scope's folders while it ran, by "
            "whomever. Not undoable: what it does over the network, elsewhere, or by services."
        ),
    ] = False


class StartedProcess(Model):
    process_id: str
    status: Literal["running", "exited", "stopped", "lost"]
    command_preview: Annotated[str, Field(description="The command line, secrets masked.")]
    started_at: str
    boundary: Annotated[str, Field(description="What the kernel enforces around it, or `none`.")]
    view_id: Annotated[
        str | None, Field(description="The view its changes go to; null where it changes the folder.")
    ] = None


@operation(
    "command.start",
    did="started",
    needs={Capability.COMMAND_RUN, Capability.PROCESS_MANAGE},
    effect=Effect.CHANGE,
    boundary="sandboxed",
    destructive=True,
    awaits_intent=True,
    shows=show_command,
    runs=lambda input: input.command,
    aliases=("process.start",),
    text=shapes.STARTED,
    examples=[
        Example(
            "Start a program with a terminal.", {"target": ".", "input": {"command": ["cat"]}, "options": {"pty": True}}
        )
    ],
)
async def command_start(
    ctx: Context, input: StartInput, target: str = ".", options: StartOptions = StartOptions()
) -> StartedProcess:
    """Start a program that keeps running, and return at once. Read, answer and stop it by its `processId`.

    It goes on when this client disconnects, and ends with the service, with `command.stop`, or when the scope's
    `maxRuntimeSeconds` are over.
    """
    view = view_for(ctx, options.view, input.command)
    request = request_of(ctx, target, input.command, input.env, pty=options.pty, view=view)
    prepared = await ctx.use(Preparation).prepare(request)
    return await start_prepared(ctx, prepared, options, view)


async def start_prepared(
    ctx: Context, prepared: Prepared, options: StartOptions, view: CommandView | None
) -> StartedProcess:
    """Start a prepared command once the intent is durable."""
    view_id = None if view is None else view.id
    if view is not None:
        view.is_left_alone = True
    ctx.boundary = prepared.boundary
    ctx.warnings.extend(prepared.warnings)
    ctx.note(program=prepared.program, arguments=len(prepared.argv) - 1)
    prepared.plan.belongs_to(ctx.operation_id)
    undo = CommandUndo(ctx, wanted=True) if options.undo and view is None and prepared.may_change else None
    if undo is not None:
        prepared.plan.releases.append(undo.ended)
    managed = await ctx.use(ProcessTable).start(
        Owner(ctx.scope.id, ctx.principal.id, client=ctx.principal.client),
        prepared,
        max_runtime_s=ctx.scope.policy.max_runtime_seconds,
        name=options.name,
        pty=PtySize(options.cols, options.rows) if options.pty else None,
        before_start=ctx.durable_intent if undo is None else undo.before_start,
    )
    # A program that cannot be executed is reported now rather than at the first read.
    await managed.changed(_FIRST_LOOK_S)
    ctx.note(processId=managed.record.process_id)
    ctx.effect = "confirmed"
    return StartedProcess(
        process_id=managed.record.process_id,
        status=managed.record.status,
        command_preview=managed.record.command_preview,
        started_at=managed.record.started_at,
        boundary=managed.record.boundary,
        view_id=view_id,
    )
