"""command.run: run one program and wait for its end."""

from typing import Annotated

from pydantic import Field

from computer_linker.operations.command.preview import show_command
from computer_linker.operations.command.undo import CommandUndo
from computer_linker.operations.command.view import CommandView, ViewOption, ViewSummary, view_for
from computer_linker.providers.processes.prepare import Preparation, Prepared
from computer_linker.providers.processes.request import request_of
from computer_linker.providers.processes.runner import Limits, Outcome, Runner
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes


class RunInput(Model):
    command: Annotated[
        str | list[str],
        Field(description="One plain command line, or an argv array. Shell syntax is refused unless policy allows it."),
    ]
    env: Annotated[dict[str, str], Field(max_length=64, description="Variables to set, as far as policy allows.")] = {}
    stdin: Annotated[str | None, Field(max_length=1_000_000, description="Text for its standard input.")] = None


class RunOptions(Model):
    timeout_seconds: Annotated[float, Field(gt=0, le=86_400, description="Stop it after this time.")] = 60
    max_output_bytes: Annotated[
        int, Field(gt=0, le=8_000_000, description="Keep this much of its output: the start and the end.")
    ] = 200_000
    view: ViewOption = False
    undo: Annotated[
        bool | None,
        Field(
            description="Make its changes of the scope's folders undoable by file.undo: null where the folders are small, true "
            "also where they are large, false never. Not undoable: what it does over the network, elsewhere, or by services."
        ),
    ] = None


class CommandOutcome(Model):
    exit_code: Annotated[int, Field(description="128 and the signal's number when a signal ended it.")]
    signal: str | None
    timed_out: bool
    stdout: str
    stderr: str
    truncated: Annotated[bool, Field(description="True when the middle of the output was left out.")]
    duration_ms: float
    boundary: Annotated[str, Field(description="What the kernel enforced around it, or `none`.")]
    view: Annotated[
        ViewSummary | None,
        Field(
            description="The view its changes are in; null where it changed the folder, or nothing on a view of the policy's."
        ),
    ] = None
    undoable: Annotated[
        bool | None,
        Field(
            description="Whether file.undo with this operation's id takes back its changes of the scope's folders; null where "
            "there are none, or with `undo: false`."
        ),
    ] = None


@operation(
    "command.run",
    did="ran",
    needs={Capability.COMMAND_RUN},
    effect=Effect.CHANGE,
    text=shapes.OUTPUT,
    boundary="sandboxed",
    deadline_s=None,
    destructive=True,
    awaits_intent=True,
    shows=show_command,
    runs=lambda input: input.command,
    examples=[
        Example("List a folder.", {"target": ".", "input": {"command": ["ls", "-a"]}}),
        Example("Run one plain command line.", {"target": ".", "input": {"command": "echo hello"}}),
    ],
)
async def command_run(
    ctx: Context, input: RunInput, target: str = ".", options: RunOptions = RunOptions()
) -> CommandOutcome:
    """Run one program in a folder of the scope and wait for its end. Its exit code is data, not a failure.

    The command becomes one argv, which is matched against the scope's rules and executed as it is, inside the kernel
    boundary that `boundary` names. Output beyond the limit loses its middle, never its end.
    """
    view = view_for(ctx, options.view, input.command)
    prepared = await ctx.use(Preparation).prepare(request_of(ctx, target, input.command, input.env, view=view))
    return await run_prepared(ctx, prepared, options, input.stdin, view)


async def run_prepared(
    ctx: Context, prepared: Prepared, options: RunOptions, stdin: str | None, view: CommandView | None = None
) -> CommandOutcome:
    """Run a prepared command once the intent is durable, and report its outcome."""
    policy = ctx.scope.policy
    ctx.boundary = prepared.boundary
    ctx.note(program=prepared.program, arguments=len(prepared.argv) - 1)
    ctx.warnings.extend(prepared.warnings)
    prepared.plan.belongs_to(ctx.operation_id)
    limits = Limits(
        timeout_s=min(options.timeout_seconds, policy.max_runtime_seconds),
        max_output_bytes=min(options.max_output_bytes, policy.max_output_bytes),
    )
    undo = CommandUndo(ctx, options.undo) if view is None and prepared.may_change else None
    try:
        outcome = await ctx.use(Runner).run(
            prepared.plan,
            prepared.env,
            limits,
            stdin=None if stdin is None else stdin.encode("utf-8", "surrogatepass"),
            before_start=ctx.durable_intent if undo is None else undo.before_start,
            on_progress=None if ctx.report is None else ctx.progress,
        )
        reported = _reported(ctx, prepared, outcome)
        if view is not None:
            return reported.model_copy(update={"view": await view.summary()})
        return reported if undo is None else reported.model_copy(update={"undoable": await undo.recorded()})
    finally:
        if undo is not None:
            await undo.release()


def _reported(ctx: Context, prepared: Prepared, outcome: Outcome) -> CommandOutcome:
    # The side effects of a program are unknown; only that it ran, and how it ended, is known.
    ctx.effect = "partial" if outcome.timed_out else "unverifiable"
    ctx.note(exitCode=outcome.exit_code, outputBytes=outcome.output_bytes, timedOut=outcome.timed_out)
    ctx.warnings.extend((*outcome.warnings, *outcome.refused, *prepared.plan.gate_warnings()))
    if outcome.refused:
        ctx.note(refusedNames=len(outcome.refused))
    if prepared.program == "git" and outcome.exit_code != 0 and "Read-only file system" in outcome.stderr:
        ctx.warn(
            "Commands cannot write git's own folder here; use git.stage, git.unstage and git.commit, and "
            "git.worktree_create for a branch."
        )
    return CommandOutcome(
        exit_code=outcome.exit_code,
        signal=outcome.signal,
        timed_out=outcome.timed_out,
        stdout=outcome.stdout,
        stderr=outcome.stderr,
        truncated=outcome.truncated,
        duration_ms=outcome.duration_ms,
        boundary=prepared.boundary,
    )
