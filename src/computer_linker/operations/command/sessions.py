"""Agent sessions among the managed processes: listed, read and stopped by the same operations, for callers with `codex:run`."""

from dataclasses import dataclass

from computer_linker.errors import InvalidRequest, ProcessNotFound
from computer_linker.operations.command.list import ListedProcess, Status
from computer_linker.operations.command.read import ProcessOutput, ReadOptions
from computer_linker.operations.command.stop import StopOptions, StoppedProcess
from computer_linker.policy.engine import holds
from computer_linker.providers.agents.agents import Agents
from computer_linker.providers.agents.program import Event, lines_of
from computer_linker.providers.agents.sessions import Session
from computer_linker.providers.processes.ring import Chunk
from computer_linker.providers.processes.waiting import WaitEnd, Waiting
from computer_linker.registry import Capability, Context

_STATUS: dict[str, Status] = {
    "running": "running", "completed": "exited", "failed": "exited", "stopped": "stopped", "timed_out": "stopped", "lost": "lost",
}  # fmt: skip


def sessions_of(ctx: Context) -> list[Session]:
    """The caller's agent sessions in this scope; none without `codex:run`."""
    if not holds(ctx.principal, ctx.scope, Capability.CODEX_RUN):
        return []
    return ctx.use(Agents).listed(ctx.principal, ctx.scope.id)


def session_of(ctx: Context, target: str) -> Session | None:
    """The caller's agent session of this id; None for any other id, which can only be a process's."""
    if target.startswith("proc_") or not holds(ctx.principal, ctx.scope, Capability.CODEX_RUN):
        return None
    try:
        return ctx.use(Agents).find(target, ctx.principal, ctx.scope.id)
    except ProcessNotFound:
        return None


def listed_session(session: Session) -> ListedProcess:
    """A session as a managed process; its status is that of its last turn."""
    turn = session.last
    return ListedProcess(
        process_id=session.session_id,
        kind=session.agent,
        name=None,
        command_preview=f"{session.agent} {turn.workflow} (turn {len(session.turns)})",
        status=_STATUS[turn.status],
        started_at=turn.started_at,
        ended_at=turn.ended_at,
        exit_code=turn.exit_code,
        signal=turn.signal,
        pty=False,
        boundary=turn.boundary,
        processes=None,
        cpu_seconds=None,
        memory_bytes=None,
        ports=[],
    )


@dataclass(frozen=True, slots=True)
class EventsRead:
    """A session's events since a cursor; `cursor` counts events."""

    session: Session
    events: list[Event]
    chunks: list[Chunk]
    cursor: int
    dropped: int
    waited: WaitEnd | None


async def events_since(ctx: Context, session: Session, options: ReadOptions) -> EventsRead:
    """The session's events since the cursor, after the wait that the options ask for. They are its standard output."""
    agents = ctx.use(Agents)
    log, running = agents.log_of(session.session_id), agents.running(session.session_id)
    if options.cursor > log.end:
        raise InvalidRequest("The cursor lies beyond the output there is.", field="cursor", end=log.end)
    waited: WaitEnd | None = None
    if options.longest_wait:
        waited = "end"
        if running is not None:
            waited = await ctx.use(Waiting).wait(running.live, options.until(), options.cursor, options.longest_wait)
            if not running.live.is_running:
                await running.done.wait()
            session = running.session
    events, cursor, dropped = log.since(options.cursor, min(options.max_bytes, ctx.scope.policy.max_output_bytes))
    events = [] if options.stream == "stderr" else events
    text = lines_of(events)
    ctx.note(events=len(events), status=session.last.status)
    return EventsRead(session, events, [{"stream": "stdout", "text": text}] if text else [], cursor, dropped, waited)


async def session_output(ctx: Context, session: Session, options: ReadOptions) -> ProcessOutput:
    """Its events since the cursor, as lines of text."""
    read = await events_since(ctx, session, options)
    turn = read.session.last
    return ProcessOutput(
        status=_STATUS[turn.status],
        exit_code=turn.exit_code,
        signal=turn.signal,
        chunks=read.chunks,
        cursor=read.cursor,
        dropped=read.dropped,
        waited=read.waited,
    )


async def stop_session(ctx: Context, session: Session, options: StopOptions) -> StoppedProcess:
    """Stop the session's turn, if one runs, and wait until that is recorded."""
    agents = ctx.use(Agents)
    running = agents.running(session.session_id)
    if running is not None:
        await agents.stop(running, options.grace_seconds, options.signal)
        session = running.session
    ctx.effect = "confirmed" if running is not None else "suspected_noop"
    turn = session.last
    ctx.note(status=turn.status)
    return StoppedProcess(status=_STATUS[turn.status], exit_code=turn.exit_code, signal=turn.signal)
