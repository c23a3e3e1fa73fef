"""codex.stop: end a running session's turn and everything it started."""

from computer_linker.operations.codex.request import agents_of
from computer_linker.operations.command.preview import show_process
from computer_linker.operations.command.stop import StopOptions
from computer_linker.providers.agents.sessions import DiffSummary, Status
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class StoppedAgent(Model):
    session_id: str
    status: Status
    exit_code: int | None
    signal: str | None
    diff_summary: DiffSummary | None


@operation(
    "codex.stop",
    did="stopped the agent session",
    needs={Capability.CODEX_RUN},
    effect=Effect.CHANGE,
    boundary="scoped-metadata",
    destructive=True,
    shows=show_process,
    examples=[Example("Stop a session.", {"target": "codex_0123", "options": {"signal": "int"}}, runs=False)],
)
async def codex_stop(ctx: Context, target: str, options: StopOptions = StopOptions()) -> StoppedAgent:
    """Stop a session's turn with everything it started. What it changed so far stays, is told, and can be taken back."""
    agents = agents_of(ctx)
    session = agents.find(target, ctx.principal, ctx.scope.id)
    running = agents.running(target)
    if running is not None:
        await agents.stop(running, options.grace_seconds, options.signal)
        session = running.session
    ctx.effect = "confirmed" if running is not None else "suspected_noop"
    turn = session.last
    ctx.note(status=turn.status)
    return StoppedAgent(
        session_id=session.session_id,
        status=turn.status,
        exit_code=turn.exit_code,
        signal=turn.signal,
        diff_summary=turn.diff_summary,
    )
