"""Agent sessions: starts turns of agent programs, records their outcome, and finds sessions again."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Self

import anyio

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.processes import Ended, SignalName
from computer_linker.errors import (
    Conflict,
    LimitExceeded,
    LinkError,
    ProcessNotFound,
)
from computer_linker.model.capability import Capability
from computer_linker.model.ids import new_handle
from computer_linker.model.paths import RootedPath
from computer_linker.model.principal import Principal, is_of
from computer_linker.policy.engine import holds
from computer_linker.providers.agents.changes import Takeback, summary_of
from computer_linker.providers.agents.claude import Claude
from computer_linker.providers.agents.codex import Codex
from computer_linker.providers.agents.launch import AgentLauncher
from computer_linker.providers.agents.live import LiveTurn, background
from computer_linker.providers.agents.order import Order, TurnView, prompt_for
from computer_linker.providers.agents.program import NO_EVENTS, AgentProgram, clip
from computer_linker.providers.agents.sessions import (
    DiffSummary,
    EventLog,
    Session,
    Sessions,
    Status,
    Turn,
    TurnProblem,
    session_folder,
    settled,
)
from computer_linker.providers.agents.shadow import Shadow, Snapshot
from computer_linker.providers.git.run import Git
from computer_linker.providers.processes.prepare import Preparation, Prepared
from computer_linker.providers.processes.records import now
from computer_linker.providers.processes.runner import Runner
from computer_linker.services import Fact, Services
from computer_linker.undo.journal import UndoJournal

log = logging.getLogger(__name__)
PROGRAMS: dict[str, AgentProgram] = {program.name: program for program in (Codex(), Claude())}
_MAX_RUNNING = 16
_MAX_PROMPT = 65_536
_MAX_STORED_OUTPUT = 65_536
_MAX_PATCH = 1_000_000
_STOP_S = 3.0


class Running:
    """A running turn: the present session, the live process, and an event for its end."""

    def __init__(self, session: Session, live: LiveTurn, prepared: Prepared, where: str) -> None:
        self.session = session
        self.live = live
        self.prepared = prepared
        self.where = where
        self.done = anyio.Event()


class Agents:
    """Runs turns, which outlive a client's disconnect but not the service, and stores sessions, which outlive both."""

    def __init__(self, services: Services) -> None:
        place = services.home / "agents"
        self.sessions = Sessions(session_folder(services.home))
        self._runner = services.use(Runner)
        self._launcher = AgentLauncher(services.use(Preparation), self._runner, place / "homes")
        self._computer = services.use(Computer)
        self._git = services.use(Git)
        self._journal = services.use(UndoJournal)
        self._shadow = Shadow(place / "shadow")
        self._note = services.note
        self._running: dict[str, Running] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services)

    def is_busy(self) -> bool:
        """True while a turn runs."""
        return bool(self._running)

    async def end_of(self, principal: str | None) -> int:
        """Stop the turns of one caller, or of all; returns how many ran."""
        theirs = [running for running in self._running.values() if is_of(running.session.principal, principal)]
        async with anyio.create_task_group() as group:
            for running in theirs:
                group.start_soon(running.live.stop, _STOP_S)
        return len(theirs)

    def find(self, session_id: str, principal: Principal, scope: str) -> Session:
        """The session of this id, if it is this caller's. Raises ProcessNotFound otherwise."""
        running = self._running.get(session_id)
        session = running.session if running is not None else self._settled(self.sessions.find(session_id))
        if session is None or not _is_theirs(session, principal, scope):
            raise ProcessNotFound("There is no such session in this scope. codex.list shows yours.")
        return session

    def listed(self, principal: Principal, scope: str) -> list[Session]:
        """This caller's sessions, the newest first."""
        return [session for session in self.every() if _is_theirs(session, principal, scope)]

    def every(self) -> list[Session]:
        """All sessions, the newest first, for the owner."""
        found = [self._settled(session) for session in self.sessions.listed()]
        return [session for session in found if session is not None and session.turns]

    def running(self, session_id: str) -> Running | None:
        return self._running.get(session_id)

    def log_of(self, session_id: str) -> EventLog:
        """The session's event log, live while it runs."""
        running = self._running.get(session_id)
        return running.live.log if running is not None else self._log(session_id)

    async def start(self, order: Order, gate: Callable[[], Awaitable[None]]) -> Running:
        """Start a turn. `gate` is awaited while the agent's process waits at its start gate."""
        self._refuse_too_many(order)
        program = PROGRAMS[order.agent]
        line, prepared = await self._launcher.prepare(order, program)
        try:
            await self._launcher.check(order, program, prepared)
            prompt = await self._prompt(order)
            before, warning = await self._before(order)
            running = await self._spawned(order, program, prepared)
        except BaseException:
            prepared.plan.release()
            raise
        try:
            await gate()
            self._open_turn(running, order, before, [*prepared.warnings, *line.warnings, *warning])
        except BaseException:
            running.live.close()
            prepared.plan.release()
            raise
        self._running[running.session.session_id] = running
        background(asyncio.create_task(self._driven(running, order, program, prompt)), self._tasks)
        return running

    async def stop(self, running: Running, grace_s: float, signal: SignalName = "term") -> None:
        """Stop a turn with its process tree, and wait until that is recorded."""
        await running.live.stop(grace_s, signal)
        await running.done.wait()

    async def aclose(self) -> None:
        """Stop everything and record it."""
        async with anyio.create_task_group() as group:
            for running in list(self._running.values()):
                group.start_soon(running.live.stop, _STOP_S)
        with anyio.move_on_after(10):
            while self._tasks:
                await asyncio.wait(self._tasks)

    async def _prompt(self, order: Order) -> bytes:
        earlier = [each for each in self.listed(order.principal, order.scope.id) if each.last.status != "running"]
        may_see_git = holds(order.principal, order.scope, Capability.GIT_READ)
        text = await prompt_for(order.workflow, order.prompt, order.cwd, earlier, self._git, may_see_git=may_see_git)
        return text.encode("utf-8", "replace")

    async def _before(self, order: Order) -> tuple[Snapshot | None, list[str]]:
        if order.mode == "read-only" or order.view is not None:
            return None, []
        try:
            taken = await self._shadow.take(order.cwd)
            inside = f"{taken.repositories} repositories inside the folder are not part of the diff, nor of an undo."
            return taken, [*([inside] if taken.repositories else []), *self._concurrent_writers(order)]
        except LinkError as error:
            return None, [f"There will be no diff and no undo of this run: {error.message}"]

    def _concurrent_writers(self, order: Order) -> list[str]:
        """A warning when another agent may write in the folder that this one's diff covers."""
        place = Path(order.cwd_path)
        for other in self._running.values():
            if other.session.last.sandbox == "workspace-write":
                where = Path(other.where)
                if place.is_relative_to(where) or where.is_relative_to(place):
                    return ["Another agent is at work in this folder; the diff cannot tell their changes apart."]
        return []

    async def _spawned(self, order: Order, program: AgentProgram, prepared: Prepared) -> Running:
        child = await self._runner.spawn(prepared.plan, prepared.env, stdin=True)
        session = order.session or Session(
            session_id=new_handle(program.name),
            agent=program.name,  # type: ignore[arg-type]  # a key of PROGRAMS
            scope=order.scope.id,
            principal=order.principal.id,
            target=order.cwd.shown,
            created_at=now(),
            model=order.model,
            client=order.principal.client,
        )
        self.sessions.place(session.session_id).mkdir(mode=0o700, exist_ok=True)
        live = LiveTurn(
            child, program.parser(), self._log(session.session_id), order.cwd_path, order.scope.policy.max_output_bytes
        )
        return Running(session, live, prepared, order.cwd_path)

    def _open_turn(self, running: Running, order: Order, before: Snapshot | None, warnings: list[str]) -> None:
        turn = Turn(
            operation_id=order.operation_id,
            workflow=order.workflow,
            sandbox=order.mode,
            prompt=clip(order.prompt, _MAX_PROMPT),
            started_at=now(),
            first_event=running.live.log.end,
            boundary=running.prepared.boundary,
            warnings=warnings,
            before=None if before is None else before.tree,
            was_empty=[] if before is None else before.empty_names(),
            view_id=None if order.view is None else order.view.id,
        )
        running.session = running.session.with_turn(turn)
        self.sessions.save(running.session)

        def learned(thread_id: str) -> None:
            running.session = running.session.model_copy(update={"thread_id": thread_id})
            self.sessions.save(running.session)

        running.live.on_thread = learned

    async def _driven(self, running: Running, order: Order, program: AgentProgram, prompt: bytes) -> None:
        """The task of one turn, from start to record. Catches its failures."""
        turn = running.session.last
        try:
            ended = await running.live.to_the_end(prompt, order.timeout_s)
            turn = _ended_turn(turn, running.live, ended, program)
            refused = await running.prepared.plan.settle_planting()
            running.prepared.plan.release()
            turn = turn.model_copy(update={"warnings": [*turn.warnings, *refused]}) if refused else turn
            turn = await self._with_changes(turn, running.session, order.cwd, order.view)
        except Exception:
            log.exception("the turn of %s failed", running.session.session_id)
            turn = turn.model_copy(update={"status": "failed", "ended_at": now()})
        finally:
            running.session = running.session.with_last(turn)
            del self._running[running.session.session_id]
            running.done.set()
            running.live.close()
            running.prepared.plan.release()
            self._remember(running.session)
        if order.op == "codex.start":
            await self._note_end(order, running.session)

    async def _note_end(self, order: Order, session: Session) -> None:
        """Record the end of a turn that its call did not wait for: the history links the session, where its output is kept."""
        turn = session.last
        facts: dict[str, Fact] = {
            "sessionId": session.session_id,
            "status": turn.status,
            "exitCode": turn.exit_code,
            "outputBytes": len(turn.stdout) + len(turn.stderr),
            "changedFiles": None if turn.diff_summary is None else turn.diff_summary.changed_files,
        }
        try:
            await self._note("codex.end", order.principal, facts, session.scope, turn.operation_id)
        except LinkError as error:
            log.error("the end of %s is not in the history: %s", session.session_id, error.message)

    async def _with_changes(self, turn: Turn, session: Session, cwd: RootedPath, view: TurnView | None = None) -> Turn:
        """The turn with its changes: those of its view, or found by comparing the folder with the snapshot taken before."""
        if turn.sandbox == "read-only":
            none = DiffSummary(changed_files=0, insertions=0, deletions=0, files=[])
            return turn.model_copy(update={"diff_summary": none})
        if view is not None and (difference := await view.difference()) is not None:
            self.sessions.save_diff(session.session_id, difference[1])
            return turn.model_copy(update={"diff_summary": difference[0], "view_id": view.id})
        if turn.before is None:
            return turn
        try:
            after = await self._shadow.take(cwd, with_empty=False)
            before = Snapshot(turn.before, 0, frozenset(turn.was_empty))
            found = await self._shadow.compare(cwd, before, after, _MAX_PATCH)
            entry = self._journal.begin(turn.operation_id, session.scope, session.principal, "codex.run")
            undoable = await Takeback(self._journal, self._computer.files, self._shadow).record(cwd, found, entry)
        except LinkError as error:
            warning = f"There is no diff and no undo of this run: {error.message}"
            return turn.model_copy(update={"warnings": [*turn.warnings, warning], "before": None})
        self.sessions.save_diff(session.session_id, found.patch)
        return turn.model_copy(update={"diff_summary": summary_of(found, cwd.shown, undoable=undoable)})

    async def judged(self, session: Session, cwd: RootedPath) -> Session:
        """A session whose last turn was lost with an earlier service, with the changes of that turn until now."""
        turn = session.last
        if turn.status != "lost" or turn.diff_summary is not None or turn.before is None:
            return session
        late = "The service died while this ran; the diff and the undo reach to the moment it was first read again."
        turn = await self._with_changes(turn.model_copy(update={"warnings": [*turn.warnings, late]}), session, cwd)
        session = session.with_last(turn)
        self._remember(session)
        return session

    def _remember(self, session: Session) -> None:
        try:
            self.sessions.save(session)
        except OSError as error:
            log.error("the record of %s cannot be written: %s", session.session_id, error.strerror)

    def _settled(self, session: Session | None) -> Session | None:
        """A stored session with its present state: a turn recorded as running that does not run was lost with its service."""
        if session is None or session.session_id in self._running:
            return self._running[session.session_id].session if session is not None else None
        now_known = settled(session) if session.turns else session
        if now_known is not session:
            self.sessions.save(now_known)
        return now_known

    def _refuse_too_many(self, order: Order) -> None:
        if order.session is not None and order.session.session_id in self._running:
            raise Conflict(
                "This session is running; wait for its end or stop it first.", sessionId=order.session.session_id
            )
        if len(self._running) >= _MAX_RUNNING:
            raise LimitExceeded(f"{_MAX_RUNNING} agents run already; stop some first.", running=len(self._running))

    def _log(self, session_id: str) -> EventLog:
        return EventLog(self.sessions.place(session_id) / "events.jsonl")


def _ended_turn(turn: Turn, live: LiveTurn, ended: Ended, program: AgentProgram) -> Turn:
    status: Status = "completed"
    if live.timed_out:
        status = "timed_out"
    elif live.was_stopped:
        status = "stopped"
    elif live.is_failed or ended.exit_code != 0 or ended.reason is not None or not live.is_understood:
        status = "failed"
    stdout, _ = live.stdout.text(_MAX_STORED_OUTPUT)
    stderr, _ = live.stderr.text(_MAX_STORED_OUTPUT)
    problem: TurnProblem | None = None
    if status == "failed":
        reason = ended.reason or (live.errors[-1] if live.errors else stderr[-2000:]) or NO_EVENTS
        found = program.problem(reason, is_from_model=live.is_failed)
        problem = TurnProblem(code=found.code, message=found.message, remedy=found.remedy)
    return turn.model_copy(
        update={
            "status": status,
            "ended_at": now(),
            "exit_code": ended.exit_code,
            "signal": ended.signal,
            "final_message": live.final_message,
            "stdout": stdout,
            "stderr": stderr,
            "usage": live.usage,
            "problem": problem,
        }
    )


def _is_theirs(session: Session, principal: Principal, scope: str) -> bool:
    return session.scope == scope and principal.owns(session.principal)
