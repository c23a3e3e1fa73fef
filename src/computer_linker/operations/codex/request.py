"""What codex.run and codex.start share: the request, the order built from it, and the reply."""

from typing import TYPE_CHECKING, Annotated, Literal

from anyio.to_thread import run_sync
from pydantic import Field

from computer_linker.errors import ExecutionFailed, InvalidRequest, ProviderUnavailable
from computer_linker.model.paths import RootedPath
from computer_linker.operations.command.view import CommandView, ViewOption
from computer_linker.providers.agents.program import clip
from computer_linker.providers.agents.sessions import (
    ChangedFile,
    DiffSummary,
    Session,
    Status,
    Turn,
    TurnProblem,
    Workflow,
)
from computer_linker.providers.processes.request import request_of
from computer_linker.providers.views.changes import Action
from computer_linker.providers.views.reading import ViewReader
from computer_linker.registry import Context, Model

if TYPE_CHECKING:
    from computer_linker.providers.agents.agents import Agents, Running

SessionId = Annotated[str, Field(min_length=1, max_length=64, description="A session that codex.list shows.")]


class AgentInput(Model):
    prompt: Annotated[str, Field(min_length=1, max_length=200_000, description="What the agent is to do.")]
    workflow: Annotated[
        Workflow,
        Field(
            description="`plan` and `review` run read-only; `fix` and `test` give the agent the changes at hand; "
            "`continue` goes on with a session."
        ),
    ] = "run"
    session_id: Annotated[SessionId | None, Field(description="Go on with this session; `continue` needs it.")] = None
    agent: Annotated[
        Literal["codex", "claude"] | None,
        Field(description="Which program; `codex` unless the session says otherwise."),
    ] = None


class AgentOptions(Model):
    timeout_seconds: Annotated[
        float | None, Field(gt=0, le=86_400, description="Stop it after this time; the scope's limit otherwise.")
    ] = None
    model: Annotated[
        str | None, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}$", description="The model to use.")
    ] = None
    sandbox: Annotated[
        Literal["read-only", "workspace-write"] | None,
        Field(description="Narrower than the scope allows, never wider."),
    ] = None
    view: ViewOption = False


def agents_of(ctx: Context) -> "Agents":
    """The agent runner; imported on first use, because many services never run an agent."""
    from computer_linker.providers.agents.agents import Agents

    return ctx.use(Agents)


async def start_turn(ctx: Context, target: str, input: AgentInput, options: AgentOptions) -> "Running":
    """Start the turn once the intent is durable."""
    from computer_linker.providers.agents.order import Order, mode_for

    agents = agents_of(ctx)
    session = await _session(ctx, agents, input)
    agent = session.agent if session is not None else input.agent or "codex"
    mode = mode_for(ctx.scope, ctx.principal, input.workflow, options.sandbox)
    where = target if session is None else session.target
    request = request_of(ctx, where, [agent], {})
    limit = ctx.scope.policy.max_runtime_seconds
    view = agent_view(ctx, options.view, agent, input.prompt) if mode == "workspace-write" else None
    order = Order(
        operation_id=ctx.operation_id,
        op=ctx.op,
        scope=ctx.scope,
        principal=ctx.principal,
        roots=request.roots,
        cwd=ctx.path(where or ".", for_writing=mode == "workspace-write"),
        agent=agent,
        workflow=input.workflow,
        prompt=input.prompt,
        mode=mode,
        timeout_s=min(options.timeout_seconds or limit, limit),
        model=options.model or (session.model if session is not None else None),
        session=session,
        view=view,
    )
    running = await agents.start(order, ctx.durable_intent)
    ctx.boundary = running.session.last.boundary
    ctx.note(agent=agent, workflow=input.workflow, sandbox=mode, sessionId=running.session.session_id)
    return running


def found(ctx: Context, session_id: str) -> tuple[Session, RootedPath]:
    """This caller's session and its folder."""
    session = agents_of(ctx).find(session_id, ctx.principal, ctx.scope.id)
    return session, ctx.path(session.target)


async def _session(ctx: Context, agents: "Agents", input: AgentInput) -> Session | None:
    if input.session_id is None:
        if input.workflow == "continue":
            raise InvalidRequest("`continue` needs a sessionId.", field="sessionId")
        return None
    # Changes of a lost turn are recorded separately from those of this one.
    session = await agents.judged(*found(ctx, input.session_id))
    if input.agent not in (None, session.agent):
        raise InvalidRequest(f"The session belongs to {session.agent}.", field="agent")
    if session.thread_id is None:
        raise InvalidRequest("The session ended before its conversation began; start a new one.", field="sessionId")
    return session


def fail_if_nothing_ran(session: Session, *, did_something: bool) -> None:
    """Raise the error that kept the agent from working at all. A turn that did something is an outcome, not a failure."""
    problem = session.last.problem
    if problem is None or did_something:
        return
    kind = ProviderUnavailable if problem.code in ("login_required", "version") else ExecutionFailed
    raise kind(
        f"{session.agent} could not do anything: {problem.message}",
        reason=problem.code,
        remedy=problem.remedy,
        sessionId=session.session_id,
        exitCode=session.last.exit_code,
    )


class AgentOutcome(Model):
    session_id: str
    agent: Literal["codex", "claude"]
    workflow: Workflow
    status: Status
    exit_code: int | None
    signal: str | None
    timed_out: bool
    final_message: str
    stdout: Annotated[str, Field(description="The agent's event stream as it printed it; the middle may be left out.")]
    stderr: str
    diff_summary: Annotated[
        DiffSummary | None, Field(description="The folder before against after; null when it could not be compared.")
    ]
    diff: Annotated[str | None, Field(description="The difference itself, when `includeDiff` asked for it.")]
    problem: TurnProblem | None
    usage: dict[str, int]
    thread_id: str | None
    sandbox: Literal["read-only", "workspace-write"]
    boundary: str
    view_id: Annotated[
        str | None, Field(description="The view its changes are in; null where it changed the folder.")
    ] = None


def outcome_of(session: Session, turn: Turn, *, max_output_bytes: int, diff: str | None) -> AgentOutcome:
    """The reply for one turn that has ended."""
    return AgentOutcome(
        session_id=session.session_id,
        agent=session.agent,
        workflow=turn.workflow,
        status=turn.status,
        exit_code=turn.exit_code,
        signal=turn.signal,
        timed_out=turn.status == "timed_out",
        final_message=turn.final_message,
        stdout=clip(turn.stdout, max_output_bytes),
        stderr=clip(turn.stderr, max_output_bytes),
        diff_summary=turn.diff_summary,
        diff=diff,
        problem=turn.problem,
        usage=turn.usage,
        thread_id=session.thread_id,
        sandbox=turn.sandbox,
        boundary=turn.boundary,
        view_id=turn.view_id,
    )


# The view that an agent works in, and its difference as agents report theirs.

_MAX_LISTED = 500
_MAX_PROMPT = 200
_ACTIONS: dict[Action, str] = {"added": "added", "removed": "deleted", "changed": "modified", "renamed": "modified"}


class AgentView(CommandView):
    """The view of one turn."""

    async def difference(self) -> tuple[DiffSummary, str] | None:
        """What the view would change, and the diff; None for a turn that has no view."""
        if self._view is None:
            return None
        reader = ViewReader.of(self._ctx, self._view)
        found = await self.changes()
        texts = await run_sync(reader.differences, found[:_MAX_LISTED], {})
        listed = zip(found, texts, strict=False)
        files = [
            ChangedFile(
                path=path.shown,
                action=_ACTIONS[change.action],  # type: ignore[arg-type]  # the three that a turn reports
                insertions=text.additions,
                deletions=text.deletions,
                binary=text.lines is None,
            )
            for (path, change), text in listed
        ]
        summary = DiffSummary(
            changed_files=len(found),
            insertions=sum(each.insertions for each in files),
            deletions=sum(each.deletions for each in files),
            files=files,
            truncated=len(found) > len(files),
        )
        await self.drop_empty()
        return summary, "".join("".join(text.lines or ()) for text in texts)


def agent_view(ctx: Context, wanted: bool | str, agent: str, prompt: str) -> AgentView | None:
    """The view to work in; None where the caller wants none and the scope's policy asks for none."""
    if not wanted and ctx.scope.policy.outcome == "direct":
        return None
    return AgentView(ctx, wanted, [agent, prompt[:_MAX_PROMPT]])
