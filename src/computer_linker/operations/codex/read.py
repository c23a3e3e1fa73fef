"""codex.read: the state of a session, and its events since a cursor."""

from typing import Annotated, Literal

from pydantic import Field

from computer_linker.errors import InvalidRequest
from computer_linker.model.base import Model
from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect
from computer_linker.operations.codex.request import agents_of, found
from computer_linker.providers.agents.events import Event, line_of
from computer_linker.providers.agents.sessions import DiffSummary, Session, Status, TurnProblem, Workflow
from computer_linker.providers.processes.ring import Chunk
from computer_linker.registry import Context, Example, operation


class ReadOptions(Model):
    cursor: Annotated[int, Field(ge=0, le=2**53, description="Where the last read ended; 0 is the beginning.")] = 0
    max_bytes: Annotated[int, Field(gt=0, le=1_000_000)] = 65_536
    wait_seconds: Annotated[
        float, Field(ge=0, le=50, description="Wait this long for a new event when there is none.")
    ] = 0
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
    needs={Capability.CODEX_RUN},
    effect=Effect.OBSERVE,
    boundary="scoped-metadata",
    examples=[
        Example("Wait for news.", {"target": "codex_0123", "options": {"waitSeconds": 20}}, runs=False),
    ],
)
async def codex_read(ctx: Context, target: str, options: ReadOptions = ReadOptions()) -> AgentState:
    """Read how a session stands and its events since a cursor, waiting for more where asked to."""
    agents = agents_of(ctx)
    session = await agents.judged(*found(ctx, target))
    log = agents.log_of(target)
    if options.cursor > log.end:
        raise InvalidRequest("The cursor lies beyond the events there are.", field="cursor", end=log.end)
    running = agents.running(target)
    if running is not None and options.wait_seconds and log.end <= options.cursor:
        await running.live.changed(options.wait_seconds)
        session = running.session
    limit = min(options.max_bytes, ctx.scope.policy.max_output_bytes)
    events, cursor, dropped = log.since(options.cursor, limit)
    ctx.note(events=len(events), status=session.last.status)
    ctx.warnings.extend(session.last.warnings)
    diff = agents.sessions.diff(target)[:limit] if options.include_diff and session.last.diff_summary else None
    message = running.live.final_message if running is not None else session.last.final_message
    return _state(session, events, cursor, dropped, message, diff)


def _state(
    session: Session, events: list[Event], cursor: int, dropped: int, message: str, diff: str | None
) -> AgentState:
    turn = session.last
    lines = "".join(f"{line}\n" for event in events if (line := line_of(event)))
    return AgentState(
        session_id=session.session_id,
        agent=session.agent,
        workflow=turn.workflow,
        status=turn.status,
        exit_code=turn.exit_code,
        signal=turn.signal,
        final_message=message,
        events=events,
        chunks=[{"stream": "stdout", "text": lines}] if lines else [],
        cursor=cursor,
        dropped=dropped,
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
