"""codex.read: the state of a session, and its events since a cursor."""

from typing import Annotated, Literal

from pydantic import Field

from computer_linker.operations.codex.request import agents_of, found
from computer_linker.operations.command.read import ReadOptions
from computer_linker.operations.command.sessions import EventsRead, events_since
from computer_linker.providers.agents.program import Event
from computer_linker.providers.agents.sessions import DiffSummary, Status, TurnProblem, Workflow
from computer_linker.providers.processes.ring import Chunk
from computer_linker.providers.processes.waiting import WaitEnd
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class SessionOptions(ReadOptions):
    """As for a process. Its events are its standard output; `stderr` is a field of its own."""

    include_diff: Annotated[bool, Field(description="Answer the last turn's difference itself too.")] = False


class AgentState(Model):
    session_id: str
    agent: Literal["codex", "claude"]
    workflow: Workflow
    status: Status
    exit_code: int | None
    signal: str | None
    final_message: str
    events: list[Event]
    chunks: Annotated[list[Chunk], Field(description="The same events as text for a person.")]
    cursor: Annotated[int, Field(description="Give this to the next read; nothing is then skipped or repeated.")]
    dropped: Annotated[int, Field(description="Events before these that were no longer kept.")]
    waited: Annotated[WaitEnd | None, Field(description="What ended the wait; null without one.")] = None
    diff_summary: DiffSummary | None
    diff: str | None
    problem: TurnProblem | None
    usage: dict[str, int]
    thread_id: str | None
    turns: int
    operation_id: Annotated[str, Field(description="Of the last turn; file.undo takes it.")]
    boundary: str
    stderr: str
    view_id: Annotated[str | None, Field(description="The view that has the changes of the last turn.")] = None


@operation(
    "codex.read",
    did="read the agent session",
    needs={Capability.CODEX_RUN},
    effect=Effect.OBSERVE,
    boundary="scoped-metadata",
    examples=[
        Example("Wait for news.", {"target": "codex_0123", "options": {"waitSeconds": 20}}, runs=False),
    ],
)
async def codex_read(ctx: Context, target: str, options: SessionOptions = SessionOptions()) -> AgentState:
    """Read how a session stands and its events since a cursor, waiting for more where asked to."""
    agents = agents_of(ctx)
    read = await events_since(ctx, await agents.judged(*found(ctx, target)), options)
    session, running = read.session, agents.running(target)
    ctx.warnings.extend(session.last.warnings)
    limit = min(options.max_bytes, ctx.scope.policy.max_output_bytes)
    diff = agents.sessions.diff(target)[:limit] if options.include_diff and session.last.diff_summary else None
    message = running.live.final_message if running is not None else session.last.final_message
    return _state(read, message, diff)


def _state(read: EventsRead, message: str, diff: str | None) -> AgentState:
    session = read.session
    turn = session.last
    return AgentState(
        session_id=session.session_id,
        agent=session.agent,
        workflow=turn.workflow,
        status=turn.status,
        exit_code=turn.exit_code,
        signal=turn.signal,
        final_message=message,
        events=read.events,
        chunks=read.chunks,
        cursor=read.cursor,
        dropped=read.dropped,
        waited=read.waited,
        diff_summary=turn.diff_summary,
        diff=diff,
        problem=turn.problem,
        usage=turn.usage,
        thread_id=session.thread_id,
        turns=len(session.turns),
        operation_id=turn.operation_id,
        boundary=turn.boundary,
        stderr=turn.stderr[-4000:],
        view_id=turn.view_id,
    )
