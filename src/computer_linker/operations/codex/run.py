"""codex.run: let an agent program work on a prompt, and wait for its end."""

from typing import TYPE_CHECKING, Annotated

import anyio
from pydantic import Field

from computer_linker.operations.codex.preview import show_turn
from computer_linker.operations.codex.request import (
    AgentInput,
    AgentOptions,
    AgentOutcome,
    agents_of,
    fail_if_nothing_ran,
    outcome_of,
    start_turn,
)
from computer_linker.registry import Capability, Context, Effect, Example, operation

if TYPE_CHECKING:
    from computer_linker.providers.agents.agents import Running

_STOP_S = 3.0
_LOOK_S = 30.0


class RunOptions(AgentOptions):
    include_diff: Annotated[bool, Field(description="Answer the difference itself too.")] = False
    max_output_bytes: Annotated[int, Field(gt=0, le=1_000_000)] = 16_384


@operation(
    "codex.run",
    did="ran an agent in",
    needs={Capability.CODEX_RUN, Capability.FS_READ},
    effect=Effect.CHANGE,
    boundary="sandboxed",
    deadline_s=None,
    destructive=True,
    awaits_intent=True,
    shows=show_turn,
    examples=[
        Example("Let Codex work.", {"target": ".", "input": {"prompt": "Add a test for greet."}}, runs=False),
        Example(
            "Review the changes at hand.",
            {"target": ".", "input": {"prompt": "Is this safe?", "workflow": "review"}},
            runs=False,
        ),
    ],
)
async def codex_run(
    ctx: Context, input: AgentInput, target: str = ".", options: RunOptions = RunOptions()
) -> AgentOutcome:
    """Let Codex (or another agent program) work in a folder of the scope and wait for its end.

    It reads and writes no more than the scope allows: read-only without fs:write, that one folder otherwise. The answer says
    what it changed; file.undo with this operation's id takes that back.
    """
    running = await start_turn(ctx, target, input, options)
    await _to_the_end(ctx, running)
    session = running.session
    turn = session.last
    fail_if_nothing_ran(session, did_something=running.live.did_something)
    ctx.warnings.extend(turn.warnings)
    summary = turn.diff_summary
    ctx.effect = "partial" if turn.status != "completed" else "unverifiable" if summary is None else "confirmed"
    ctx.note(
        exitCode=turn.exit_code,
        status=turn.status,
        outputBytes=len(turn.stdout) + len(turn.stderr),
        changedFiles=None if summary is None else summary.changed_files,
    )
    limit = ctx.scope.policy.max_output_bytes
    diff = agents_of(ctx).sessions.diff(session.session_id)[:limit] if options.include_diff and summary else None
    return outcome_of(session, turn, max_output_bytes=min(options.max_output_bytes, limit), diff=diff)


async def _to_the_end(ctx: Context, running: "Running") -> None:
    from computer_linker.providers.agents.live import progress_line

    cursor = running.session.last.first_event
    try:
        while not running.done.is_set():
            await running.live.changed(_LOOK_S)
            if ctx.report is not None:
                line, cursor = progress_line(running.live.log, cursor)
                if line:
                    ctx.progress(line, float(cursor))
    except BaseException:
        # The waiting caller has disconnected: its turn is stopped too, and the record has that.
        with anyio.CancelScope(shield=True):
            await agents_of(ctx).stop(running, _STOP_S)
        raise
