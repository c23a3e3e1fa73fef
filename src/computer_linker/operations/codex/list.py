"""codex.list: the agent sessions of this caller in this scope."""

from typing import Annotated, Literal

from pydantic import Field

from computer_linker.operations.codex.request import agents_of
from computer_linker.providers.agents.program import clip
from computer_linker.providers.agents.sessions import DiffSummary, Session, Status, TurnProblem, Workflow
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation

_PREVIEW = 8_000


class ListOptions(Model):
    limit: Annotated[int, Field(gt=0, le=200)] = 50


class ListedRun(Model):
    session_id: str
    agent: Literal["codex", "claude"]
    workflow: Annotated[Workflow, Field(description="Of the last turn, as are the fields below.")]
    status: Annotated[
        Status, Field(description="`lost` when the service died while it ran: it ended then, and how is not known.")
    ]
    target: str
    thread_id: str | None
    turns: int
    started_at: str
    ended_at: str | None
    exit_code: int | None
    final_message: Annotated[str, Field(description="Its start and end; codex.read has all of it.")]
    changed_files: int | None
    operation_id: str
    sandbox: Literal["read-only", "workspace-write"]
    boundary: str
    detail: Annotated["RunDetail | None", Field(description="Only of the one session that the target names.")] = None


class TurnEntry(Model):
    operation_id: str
    workflow: Workflow
    status: Status
    started_at: str
    ended_at: str | None
    exit_code: int | None
    changed_files: int | None


class RunDetail(Model):
    """One session, as far as it is stored."""

    stdout: Annotated[str, Field(description="Of the last turn: its start and end.")]
    stderr: str
    signal: str | None
    prompt: str
    diff_summary: DiffSummary | None
    problem: TurnProblem | None
    history: Annotated[list[TurnEntry], Field(description="Every turn that is kept, the oldest first.")]


class RunList(Model):
    runs: list[ListedRun]
    truncated: bool


@operation(
    "codex.list",
    did="listed agent sessions",
    needs={Capability.CODEX_RUN},
    effect=Effect.OBSERVE,
    boundary="scoped-metadata",
    examples=[
        Example("List my sessions.", {}),
        Example("Look at one of them.", {"target": "codex_0123"}, runs=False),
    ],
)
async def codex_list(ctx: Context, target: str | None = None, options: ListOptions = ListOptions()) -> RunList:
    """List the agent sessions of this scope that this client started, the newest first; they outlive the service.

    With a session id as target, that one alone, with its output, changes and turns.
    """
    if target:
        session = agents_of(ctx).find(target, ctx.principal, ctx.scope.id)
        ctx.note(sessions=1)
        return RunList(runs=[_listed(session).model_copy(update={"detail": _detail(session)})], truncated=False)
    found = agents_of(ctx).listed(ctx.principal, ctx.scope.id)
    ctx.note(sessions=len(found))
    return RunList(runs=[_listed(session) for session in found[: options.limit]], truncated=len(found) > options.limit)


def _detail(session: Session) -> RunDetail:
    turn = session.last
    return RunDetail(
        stdout=clip(turn.stdout, _PREVIEW),
        stderr=clip(turn.stderr, _PREVIEW),
        signal=turn.signal,
        prompt=clip(turn.prompt, _PREVIEW),
        diff_summary=turn.diff_summary,
        problem=turn.problem,
        history=[
            TurnEntry(
                operation_id=one.operation_id,
                workflow=one.workflow,
                status=one.status,
                started_at=one.started_at,
                ended_at=one.ended_at,
                exit_code=one.exit_code,
                changed_files=None if one.diff_summary is None else one.diff_summary.changed_files,
            )
            for one in session.turns
        ],
    )


def _listed(session: Session) -> ListedRun:
    turn = session.last
    return ListedRun(
        session_id=session.session_id,
        agent=session.agent,
        workflow=turn.workflow,
        status=turn.status,
        target=session.target,
        thread_id=session.thread_id,
        turns=len(session.turns),
        started_at=turn.started_at,
        ended_at=turn.ended_at,
        exit_code=turn.exit_code,
        final_message=clip(turn.final_message, 500),
        changed_files=None if turn.diff_summary is None else turn.diff_summary.changed_files,
        operation_id=turn.operation_id,
        sandbox=turn.sandbox,
        boundary=turn.boundary,
    )
