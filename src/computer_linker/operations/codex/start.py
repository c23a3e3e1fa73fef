"""codex.start: let an agent program work on a prompt, and return at once."""

from typing import Annotated, Literal

from pydantic import Field

from computer_linker.operations.codex.preview import show_turn
from computer_linker.operations.codex.request import AgentInput, AgentOptions, start_turn
from computer_linker.providers.agents.sessions import Status, Workflow
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class StartedAgent(Model):
    session_id: Annotated[str, Field(description="Read, stop and continue it by this id.")]
    agent: Literal["codex", "claude"]
    workflow: Workflow
    status: Status
    cursor: Annotated[int, Field(description="Where the events of this turn begin.")]
    started_at: str
    sandbox: Literal["read-only", "workspace-write"]
    boundary: str
    view_id: Annotated[
        str | None, Field(description="The view its changes go to; null where it changes the folder.")
    ] = None


@operation(
    "codex.start",
    did="started an agent in",
    needs={Capability.CODEX_RUN, Capability.FS_READ},
    effect=Effect.CHANGE,
    boundary="sandboxed",
    deadline_s=180,
    destructive=True,
    awaits_intent=True,
    shows=show_turn,
    examples=[
        Example("Start Codex on a task.", {"target": ".", "input": {"prompt": "Fix the failing test."}}, runs=False)
    ],
)
async def codex_start(
    ctx: Context, input: AgentInput, target: str = ".", options: AgentOptions = AgentOptions()
) -> StartedAgent:
    """Start Codex (or another agent program) and return at once; codex.read follows it, codex.stop ends it.

    It goes on when this client disconnects and ends with the service. The session can be continued afterwards.
    """
    running = await start_turn(ctx, target, input, options)
    session, turn = running.session, running.session.last
    ctx.warnings.extend(turn.warnings)
    ctx.effect = "confirmed"
    return StartedAgent(
        session_id=session.session_id,
        agent=session.agent,
        workflow=turn.workflow,
        status=turn.status,
        cursor=turn.first_event,
        started_at=turn.started_at,
        sandbox=turn.sandbox,
        boundary=turn.boundary,
        view_id=turn.view_id,
    )
