"""The dispatcher's steps: scope, operation, capability, parse, policy, confirm, intent, run, outcome, envelope.

Nothing else turns an exception into a failure, and nothing else audits.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from computer_linker.approvals.approvals import Approvals, Approver, Yes
from computer_linker.approvals.request import NeedsInput, Preview
from computer_linker.audit.command_line import command_preview
from computer_linker.audit.faults import AuditUnavailable
from computer_linker.audit.log import AuditLog
from computer_linker.audit.store import AuditStore
from computer_linker.computer.base import Computer
from computer_linker.dispatch.batches import about_steps, ask_once, in_a_batch, is_as_shown
from computer_linker.dispatch.deadline import within
from computer_linker.dispatch.device_queues import DeviceQueues, PersonWatch
from computer_linker.dispatch.events import (
    Caller,
    Routes,
    answer_of,
    far_client,
    head_of,
    mark_failed,
    mark_left,
    name_input,
    name_object,
    new_event,
)
from computer_linker.dispatch.intent import Intent, hold_to, hold_to_policy, run_after_intent
from computer_linker.dispatch.leaving import masked, masked_line, masked_report
from computer_linker.dispatch.live_sessions import LiveSessions
from computer_linker.dispatch.pause import HALTED_NAME, Pause
from computer_linker.errors import (
    Aborted,
    ConfirmRequired,
    ExecutionFailed,
    InvalidRequest,
    LinkError,
    TimedOut,
)
from computer_linker.model.effect import Effect
from computer_linker.model.envelope import Call, Reply, error_object, wire_call
from computer_linker.model.event import Event
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.policy.engine import find_scope, judge, refuse
from computer_linker.registry.catalog import Catalog
from computer_linker.registry.context import Context, Progress, Step
from computer_linker.registry.operation import Operation
from computer_linker.registry.schema import signature
from computer_linker.registry.spelling import read_arguments, read_wire
from computer_linker.services import Fact, Services

log = logging.getLogger(__name__)

_INSIDE = "The operation failed inside the service. The service's log has the reason under this operation id."


class Dispatcher:
    """Runs calls. One instance serves every surface."""

    def __init__(
        self,
        catalog: Catalog,
        services: Services,
        computer: Computer,
        audit: AuditLog,
        halted: Path | None = None,
    ) -> None:
        """`halted` is the marker of a halt, where it is not in the state folder of these services."""
        self.catalog = catalog
        self.services = services
        self.computer = computer
        self.audit = audit
        self.queues = DeviceQueues(halted or services.home / HALTED_NAME)
        self.person = PersonWatch(computer, self.queues)
        self.pause = Pause(services.home)
        self.routes: Routes | None = None
        self.sessions = services.use(LiveSessions)
        self.under_way = 0

    def with_catalog(self, catalog: Catalog, audit: AuditLog | None = None) -> "Dispatcher":
        """The same queues for other operations: the facet calls of a paired computer, the owner's own."""
        other = copy(self)
        other.catalog, other.audit = catalog, audit or self.audit
        return other

    async def call_wire(
        self, value: Any, principal: Principal, report: Progress | None = None, ask: Approver | None = None
    ) -> Reply:
        """Run a request whose outer shape has not been checked yet."""
        given = value if isinstance(value, dict) else {}
        await self.ready(given.get("op"))
        try:
            call = read_wire(self.catalog, value)
        except InvalidRequest as error:
            return await self.refuse(given, principal, error)
        return await self.call(call, principal, report, ask)

    async def ready(self, op: object) -> None:
        """Import in a thread what an answer about this name needs, so that an unknown one holds nothing up."""
        if self.catalog.lacks(op):
            await anyio.to_thread.run_sync(self.catalog.load)

    async def refuse(
        self, value: dict[str, Any], principal: Principal, error: LinkError, parent: str | None = None
    ) -> Reply:
        """Audit and answer a request that a surface or the envelope's form already rules out."""
        # Only existing names are recorded: anything else may be arbitrary input of the caller.
        scope = next((known.id for known in self.services.config.scopes if known.id == value.get("scope")), "")
        op = value.get("op")
        event = new_event(scope, op if type(op) is str and op in self.catalog.by_name else "", principal, parent)
        return masked(self.services, await self._failed(event, time.perf_counter(), error))

    async def introspect(self, name: str, principal: Principal, work: Callable[[], Awaitable[dict[str, Any]]]) -> Reply:
        """Run a tool that is not an operation (get_computer_info, get_operation_history) with the same audit and failures."""
        started = time.perf_counter()
        event = new_event("", name, principal, None)
        try:
            self.pause.check(principal)
            if not principal.is_owner:
                self.sessions.seen(principal).calls += 1
            answer = await work()
        except LinkError as error:
            return await self._failed(event, started, error)
        except Exception:
            log.exception("%s %s failed", name, event.operation_id)
            return await self._failed(event, started, ExecutionFailed(_INSIDE))
        event.ok = True
        await self._close(event, started)
        return masked(self.services, Reply(answer))

    async def note(
        self,
        name: str,
        principal: Principal,
        notes: Mapping[str, Fact],
        scope: str = "",
        parent: str | None = None,
        /,
        *,
        error: LinkError | None = None,
    ) -> str:
        """Record what the service itself did, or with `error` refused, about a principal; the id of the event."""
        event = new_event(scope, name, principal, parent)
        event.summary = dict(notes)
        if error is None:
            event.ok, event.effect = True, "confirmed"
        else:
            mark_failed(event, error)
        await self._close(event, time.perf_counter())
        return event.operation_id

    async def note_opening(self, principal: Principal, protocol: str) -> None:
        """Record that a client has opened a session; without a history it can only call what needs no record."""
        try:
            await self.note("session.open", principal, {"protocol": protocol})
        except AuditUnavailable as error:
            log.error("the opening of session %s is not in the history: %s", principal.session, error.message)

    async def call(
        self,
        call: Call,
        principal: Principal,
        report: Progress | None = None,
        ask: Approver | None = None,
        parent: str | None = None,
        notes: Mapping[str, str] | None = None,
        yes: Yes | None = None,
    ) -> Reply:
        """Run one call to its envelope; only cancellation and a question for the client's dialog (from `ask`) are raised.

        `yes` is a person's answer to a batch that this call is a step of.

        The envelope's `op` is the name that was asked for; `canonicalOp` is the operation's own, where they differ.
        """
        caller = Caller(principal, masked_report(self.services, report), ask, yes)
        reply = await self._called(call, caller, parent, notes)
        # Another computer's envelope may lack it, or have anything there.
        own = reply.envelope.get("op")
        reply.envelope["op"] = call.op
        if isinstance(own, str) and own != call.op and own in self.catalog.operations:
            reply.envelope["canonicalOp"] = own
        return masked(self.services, reply)

    async def _called(self, call: Call, caller: Caller, parent: str | None, notes: Mapping[str, str] | None) -> Reply:
        principal, started = caller.principal, time.perf_counter()
        await self.ready(call.op)
        event = new_event(call.scope, call.op, principal, parent)
        event.summary.update(notes or {})
        self.under_way += 1
        try:
            with self.sessions.running(principal, event.operation_id, call.op, call.scope) as running, running.scope:
                return await self._run(self.catalog.current(call), caller, event, started)
            raise running.failure(event)
        except LinkError as error:
            name_object(event, self.catalog.by_name.get(call.op), call)
            return await self._failed(event, started, error)
        except (anyio.get_cancelled_exc_class(), NeedsInput) as left:
            how = ConfirmRequired if isinstance(left, NeedsInput) else Aborted
            mark_left(event, self.catalog.by_name.get(event.op), how)
            await self._close_failure(event, started)
            raise
        except Exception:
            log.exception("operation %s %s failed", event.operation_id, call.op)
            return await self._failed(event, started, ExecutionFailed(_INSIDE))
        finally:
            self.under_way -= 1

    async def _run(self, call: Call, caller: Caller, event: Event, started: float) -> Reply:
        principal = caller.principal
        self.pause.check(principal)
        if self.routes is not None and "/" in call.scope and principal.grants is None:
            return await self._forward(self.routes, call, caller, event, started)
        scope = find_scope(self.services.current_config, call.scope, principal)
        op = self.catalog.find(call.op)
        event.op, event.capability = op.name, op.capability
        verdict = judge(scope, op, principal)
        event.decision = verdict.decision
        if verdict.decision != "allow":
            event.reason = verdict.reason
        refuse(verdict, op)
        call, arguments = read_arguments(op, call)
        name_input(event, op, arguments)
        if type(call.target) is str:
            event.target = call.target
        intent = None if op.effect is Effect.OBSERVE else Intent(self.audit, event)
        ctx = self._context(op, scope, caller, event, intent, call)
        ctx.warnings.extend(call.respelled)
        if op.runs is not None and (line := await op.command_line(ctx, arguments)) is not None:
            event.command_preview = command_preview(masked_line(self.services, line))
        yes: Yes | None = None
        if verdict.decision == "ask":
            seen = self._context(op, scope, caller, event, None, call)
            preview = partial(op.preview, seen, arguments)
            yes = caller.yes
            if yes is None or not await is_as_shown(yes, call, op, scope, principal, preview):
                yes = await self.services.use(Approvals).confirm(call, op, scope, principal, caller.ask, preview)
            event.approval = yes.approval
            self._hold(ctx, op, yes)
            hold_to(ctx, yes.asked, seen, preview, partial(self._hold, ctx, op, yes))
        elif op.makes is not None:
            yes = await ask_once(ctx, op, call, caller.ask, op.makes(ctx, **arguments))
            if yes is not None:
                event.decision, event.approval = "ask", yes.approval
                self._hold(ctx, op, yes)
        result = await self._within_limits(ctx, op, arguments, intent, yes)
        return await self._answered(ctx, event, started, result)

    async def _forward(self, routes: Routes, call: Call, caller: Caller, event: Event, started: float) -> Reply:
        """Send the call to the computer its scope names. That computer decides; this one records it."""
        computer, _, scope = call.scope.partition("/")
        op = self.catalog.by_name.get(call.op)
        if type(call.target) is str:
            event.target = call.target
        if op is None or op.effect is not Effect.OBSERVE:
            intent = Intent(self.audit, event)
            intent.record()
            await intent.durable()
        far = far_client(caller.principal, self.services.use(AuditStore).key)
        reply = await routes.call(computer, replace(call, scope=scope, far=far), caller.report)
        envelope = reply.envelope
        event.ok = reply.ok
        event.effect = envelope.get("effect")
        event.error_code = None if reply.ok else envelope.get("error", {}).get("code")
        # The id is that computer's own, so that undo and history there know it.
        event.summary.update(computer=computer, operation=str(envelope.get("operationId")))
        await self._close(event, started)
        return Reply({**envelope, "scope": call.scope}, reply.attachments)

    def _context(
        self, op: Operation, scope: Scope, caller: Caller, event: Event, intent: Intent | None, call: Call
    ) -> Context:
        async def dispatch(inner: Call, yes: Yes | None = None, /) -> Reply:
            ask, parent = caller.ask if op.makes is None else in_a_batch(caller.ask), event.operation_id
            event.steps_begun += 1
            reply = await self.call(inner, caller.principal, caller.report, ask, parent=parent, yes=yes)
            event.steps_ended += 1
            return reply

        async def refuse_inner(inner: Call, error: LinkError) -> Reply:
            return await self.refuse(wire_call(inner), caller.principal, error, parent=event.operation_id)

        async def about_inner(ctx: Context, steps: Sequence[Step]) -> Preview | None:
            look = partial(self._context, caller=caller, event=replace(event, summary={}), intent=None)
            return await about_steps(ctx, steps, look)

        return Context(
            operation_id=event.operation_id,
            op=op.name,
            scope=scope,
            principal=caller.principal,
            computer=self.computer,
            services=self.services,
            dispatch=dispatch,
            refuse=refuse_inner,
            about_steps=about_inner,
            durable_intent=_nothing_to_record if intent is None else intent.durable,
            sync_with_intent=None if intent is None else intent.sync_with,
            parent=event.parent,
            report=caller.report,
            cwd=op.cwd_in(call.options),
            payload=call.payload,
            stream=call.stream,
            may_change=intent is not None and op.shows is not None,
            # Also what fails says in the history what it was about.
            notes=event.summary,
        )

    async def stop_clients(self) -> int:
        """End the calls, processes, agents and browsers of every client; return how many there were."""
        return self.sessions.stop_all() + await self.services.end_of(None)

    async def aclose(self) -> None:
        """Stop listening for the person at the machine."""
        await self.person.aclose()

    async def _within_limits(
        self, ctx: Context, op: Operation, arguments: dict[str, Any], intent: Intent | None, yes: Yes | None
    ) -> Any:
        """Run it in its device queue, if it has one, and within its deadline; waiting for the queue does not count."""
        if op.device_queue is None:
            return await self._within_time(ctx, op, arguments, intent)
        self.person.wake()
        async with self.queues.hold(op.device_queue, ctx.principal):
            self._hold(ctx, op, yes)
            return await self._within_time(ctx, op, arguments, intent)
        raise AssertionError("a device queue that ends its body raises")

    def _hold(self, ctx: Context, op: Operation, yes: Yes | None) -> None:
        """Refuse what the owner has forbidden while the call waited, for a person or for its turn."""
        self.pause.check(ctx.principal)
        hold_to_policy(ctx, op, yes)

    async def _within_time(self, ctx: Context, op: Operation, arguments: dict[str, Any], intent: Intent | None) -> Any:
        limit = ctx.scope.policy.max_runtime_seconds
        # An operation that keeps its own time gets a little more, so that its own answer comes first; so does a stream,
        # which lasts as long as its bytes do.
        is_free = op.deadline_s is None or ctx.stream is not None
        seconds = limit + 10 if is_free else min(op.deadline_s or limit, limit)
        try:
            return await within(seconds, run_after_intent(ctx, op, arguments, intent))
        except TimeoutError:
            pass
        raise TimedOut(f"{op.name} took longer than {seconds:g} seconds and was stopped.", seconds=seconds)

    async def _answered(self, ctx: Context, event: Event, started: float, result: Any) -> Reply:
        error = ctx.failure
        event.ok, event.error_code = error is None, None if error is None else error.code
        event.effect, event.boundary = ctx.effect, ctx.boundary
        await self._close_effect(ctx, event, started)
        return Reply(answer_of(event, result, ctx.warnings, error), ctx.attachments)

    async def _failed(self, event: Event, started: float, error: LinkError) -> Reply:
        mark_failed(event, error)
        await self._close_failure(event, started)
        op = self.catalog.by_name.get(event.op)
        if isinstance(error, InvalidRequest) and op is not None:
            error.details["signature"] = signature(op)
        return Reply({**head_of(event), "error": error_object(error)})

    async def _close_effect(self, ctx: Context, event: Event, started: float) -> None:
        try:
            await self._close(event, started)
        except AuditUnavailable as error:
            if not event.intended:
                # An observation that cannot be recorded is refused: nothing runs unrecorded.
                raise
            ctx.warn(f"This was done, and its intent is in the history; its outcome is not there yet. {error.message}")

    async def _close_failure(self, event: Event, started: float) -> None:
        # Not shielded: closing a record never waits, so a cancelled call is recorded too.
        try:
            await self._close(event, started)
        except AuditUnavailable as error:
            log.error("operation %s %s is not in the history: %s", event.operation_id, event.op, error.message)

    async def _close(self, event: Event, started: float) -> None:
        event.duration_ms = round((time.perf_counter() - started) * 1000, 3)
        if event.intended:
            await self.audit.outcome(event)
        else:
            await self.audit.record(event)


async def _nothing_to_record() -> None:
    return None
