"""The one road: scope, operation, capability, parse, policy, confirm, intent, run, outcome, envelope.

Nothing else turns an exception into a failure, and nothing else audits.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any, Protocol

import anyio

from computer_linker.audit.faults import AuditUnavailable
from computer_linker.audit.log import AuditLog
from computer_linker.computer.base import Computer
from computer_linker.computer.remote.flow import Flow
from computer_linker.dispatch.holding import hold_to
from computer_linker.dispatch.intent import Intent
from computer_linker.dispatch.lanes import Lanes
from computer_linker.dispatch.person import PersonWatch
from computer_linker.errors import (
    Aborted,
    ConfigInvalid,
    ConfirmRequired,
    ExecutionFailed,
    InvalidRequest,
    LinkError,
    TimedOut,
)
from computer_linker.model.effect import Effect
from computer_linker.model.envelope import Call, Reply, failure_of, parse_call
from computer_linker.model.event import Event
from computer_linker.model.ids import new_ulid
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.policy.engine import find_scope, judge, refuse
from computer_linker.providers.approvals import Approvals, Approver, NeedsInput
from computer_linker.registry.catalog import Catalog
from computer_linker.registry.context import Context, Progress
from computer_linker.registry.operation import Operation
from computer_linker.registry.services import Services

log = logging.getLogger(__name__)

_INSIDE = "The operation failed inside the service. The service's log has the reason under this operation id."


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and the two ways back to them while the call runs."""

    principal: Principal
    report: Progress | None
    ask: Approver | None


class Routes(Protocol):
    """The way to other computers."""

    async def call(self, computer: str, call: Call, report: Progress | None) -> Reply: ...


class Dispatcher:
    """Runs calls. One instance serves every surface."""

    def __init__(
        self,
        catalog: Catalog,
        services: Services,
        computer: Computer,
        audit: AuditLog,
    ) -> None:
        self.catalog = catalog
        self.services = services
        self.computer = computer
        self.audit = audit
        self.lanes = Lanes(services.home / "desktop-halted")
        self.person = PersonWatch(computer, self.lanes)
        self.routes: Routes | None = None
        self.under_way = 0

    def with_catalog(self, catalog: Catalog) -> "Dispatcher":
        """The same road, lanes and audit for other operations: the facet calls of a paired computer."""
        other = Dispatcher(catalog, self.services, self.computer, self.audit)
        other.lanes, other.person = self.lanes, self.person
        return other

    async def call_wire(
        self, value: Any, principal: Principal, report: Progress | None = None, ask: Approver | None = None
    ) -> Reply:
        """Run a request whose outer shape has not been checked yet."""
        try:
            call = parse_call(value)
        except InvalidRequest as error:
            return await self.refuse(value if isinstance(value, dict) else {}, principal, error)
        return await self.call(call, principal, report, ask)

    def is_instant(self, value: dict[str, Any]) -> bool:
        """True for a request that `call_wire` answers without ever waiting, so that a surface need not make a task for it."""
        op, scope = value.get("op"), value.get("scope")
        found = self.catalog.by_name.get(op) if type(op) is str else None
        return (
            found is not None and found.instant and not value.get("options") and type(scope) is str and "/" not in scope
        )

    async def refuse(self, value: dict[str, Any], principal: Principal, error: LinkError) -> Reply:
        """Audit and answer a request that a surface or the envelope's shape already rules out."""
        # Only names that exist here are kept: anything else may be whatever the caller sent.
        scope = next((known.id for known in self.services.config.scopes if known.id == value.get("scope")), "")
        op = next((name for name in self.catalog.by_name if name == value.get("op")), "")
        event = _event_for(scope, op, principal, None)
        return await self._failed(event, time.perf_counter(), error)

    async def introspect(self, name: str, principal: Principal, work: Callable[[], Awaitable[dict[str, Any]]]) -> Reply:
        """Run a tool that is not an operation (get_computer_info, get_operation_history) with the same audit and failures."""
        started = time.perf_counter()
        event = _event_for("", name, principal, None)
        try:
            answer = await work()
        except LinkError as error:
            return await self._failed(event, started, error)
        except ConfigInvalid as error:
            return await self._failed(event, started, _config_refusal(error))
        except Exception:
            log.exception("%s %s failed", name, event.operation_id)
            return await self._failed(event, started, ExecutionFailed(_INSIDE))
        event.ok = True
        await self._close(event, started)
        return Reply(answer)

    async def note(self, name: str, principal: Principal, notes: Mapping[str, str | int]) -> None:
        """Tell in the history what the service itself did about a principal."""
        event = _event_for("", name, principal, None)
        event.ok, event.effect = True, "confirmed"
        event.summary.update(notes)
        await self._close(event, time.perf_counter())

    async def call(
        self,
        call: Call,
        principal: Principal,
        report: Progress | None = None,
        ask: Approver | None = None,
        parent: str | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> Reply:
        """Run one call to its envelope; only cancellation and a question back (from `ask`, the client's dialog) are raised."""
        started = time.perf_counter()
        event = _event_for(call.scope, call.op, principal, parent)
        event.summary.update(notes or {})
        self.under_way += 1
        try:
            return await self._run(call, Caller(principal, report, ask), event, started)
        except LinkError as error:
            return await self._failed(event, started, error)
        except ConfigInvalid as error:
            return await self._failed(event, started, _config_refusal(error))
        except (anyio.get_cancelled_exc_class(), NeedsInput) as left:
            await self._left(event, started, ConfirmRequired if isinstance(left, NeedsInput) else Aborted)
            raise
        except Exception:
            log.exception("operation %s %s failed", event.operation_id, call.op)
            return await self._failed(event, started, ExecutionFailed(_INSIDE))
        finally:
            self.under_way -= 1

    async def _run(self, call: Call, caller: Caller, event: Event, started: float) -> Reply:
        principal = caller.principal
        if self.routes is not None and "/" in call.scope and principal.grants is None:
            return await self._elsewhere(self.routes, call, caller, event, started)
        scope = find_scope(self.services.config, call.scope, principal)
        op = self.catalog.find(call.op)
        event.op = op.name
        event.capability = op.capability
        verdict = judge(scope, op, principal)
        event.decision = verdict.decision
        if verdict.decision != "allow":
            event.reason = verdict.reason
        refuse(verdict, op)
        arguments = op.parse(call.target, call.input, call.options)
        if type(call.target) is str:
            event.target = call.target
        intent = None if op.effect is Effect.OBSERVE else Intent(self.audit, event)
        ctx = self._context(op, scope, caller, event, intent, call.cargo)
        if verdict.decision == "ask":
            look = partial(op.look, self._context(op, scope, caller, event, None, call.cargo), arguments)
            yes = await self.services.use(Approvals).confirm(call, op, scope, principal, caller.ask, look)
            self._judge_again(ctx, op)
            if yes is not None and yes.about is not None:
                hold_to(ctx, yes, look)
        if op.instant and not call.options and intent is None:
            result = await op.run(ctx, **arguments)
        else:
            result = await self._within_limits(ctx, op, arguments, intent)
        return await self._succeeded(ctx, event, started, result)

    async def _elsewhere(self, routes: Routes, call: Call, caller: Caller, event: Event, started: float) -> Reply:
        """Send the call to the computer its scope names. That computer decides; here it is recorded."""
        computer, _, scope = call.scope.partition("/")
        op = self.catalog.by_name.get(call.op)
        if type(call.target) is str:
            event.target = call.target
        if op is None or op.effect is not Effect.OBSERVE:
            intent = Intent(self.audit, event)
            intent.record()
            await intent.durable()
        there = Call(scope, call.op, call.target, call.input, call.options, call.confirm, call.cargo)
        reply = await routes.call(computer, there, caller.report)
        envelope = reply.envelope
        event.ok = reply.ok
        event.effect = envelope.get("effect")
        event.error_code = None if reply.ok else envelope.get("error", {}).get("code")
        # The id is that computer's own, so that undo and history there know it.
        event.summary = {"computer": computer, "operation": str(envelope.get("operationId"))}
        await self._close(event, started)
        return Reply({**envelope, "scope": call.scope}, reply.attachments)

    def _context(
        self, op: Operation, scope: Scope, caller: Caller, event: Event, intent: Intent | None, cargo: Any = None
    ) -> Context:
        async def dispatch(inner: Call) -> Reply:
            return await self.call(inner, caller.principal, caller.report, caller.ask, parent=event.operation_id)

        return Context(
            operation_id=event.operation_id,
            op=op.name,
            scope=scope,
            principal=caller.principal,
            computer=self.computer,
            services=self.services,
            dispatch=dispatch,
            durable_intent=_nothing_to_record if intent is None else intent.durable,
            beside_intent=None if intent is None else intent.beside,
            unsynced_intent=None if intent is None else intent.unsynced,
            report=caller.report,
            cargo=cargo,
        )

    async def aclose(self) -> None:
        """Stop listening for the person at the machine."""
        await self.person.aclose()

    async def _within_limits(
        self, ctx: Context, op: Operation, arguments: dict[str, Any], intent: Intent | None
    ) -> Any:
        """Run it in its lane, when it has one, and within its time; waiting for the lane does not count."""
        if op.lane is None:
            return await self._within_time(ctx, op, arguments, intent)
        self.person.wake()
        async with self.lanes.hold(op.lane, ctx.principal):
            self._judge_again(ctx, op)
            return await self._within_time(ctx, op, arguments, intent)
        raise AssertionError("a lane that ends its body raises")

    def _judge_again(self, ctx: Context, op: Operation) -> None:
        """Refuse what the owner took away while the call waited, for a person or for its turn."""
        scope = find_scope(self.services.config, ctx.scope.id, ctx.principal)
        if scope is not ctx.scope:
            refuse(judge(scope, op, ctx.principal), op)

    async def _within_time(self, ctx: Context, op: Operation, arguments: dict[str, Any], intent: Intent | None) -> Any:
        limit = ctx.scope.policy.max_runtime_seconds
        # An operation that keeps its own time gets a little more, so that its own answer comes first; so does a stream,
        # which lasts as long as its bytes do.
        is_free = op.deadline_s is None or isinstance(ctx.cargo, Flow)
        seconds = limit + 10 if is_free else min(op.deadline_s or limit, limit)
        with anyio.CancelScope() as scope:
            # Most operations never wait, and a timer costs more than they do: it is set with the first wait.
            loop = asyncio.get_running_loop()
            arming = loop.call_soon(_arm, scope, loop.time() + seconds)
            try:
                return await self._after_intent(ctx, op, arguments, intent)
            except TimeoutError:
                pass
            finally:
                arming.cancel()
        raise TimedOut(f"{op.name} took longer than {seconds:g} seconds and was stopped.", seconds=seconds)

    async def _after_intent(self, ctx: Context, op: Operation, arguments: dict[str, Any], intent: Intent | None) -> Any:
        if intent is None:
            return await op.run(ctx, **arguments)
        intent.record()
        if not op.awaits_intent:
            await ctx.durable_intent()
        return await op.run(ctx, **arguments)

    async def _succeeded(self, ctx: Context, event: Event, started: float, result: Any) -> Reply:
        event.ok = True
        event.effect = ctx.effect
        event.boundary = ctx.boundary
        event.summary = {**event.summary, **ctx.notes} if event.summary else ctx.notes
        await self._close_effect(ctx, event, started)
        envelope: dict[str, Any] = {
            "ok": True,
            "operationId": event.operation_id,
            "scope": event.scope,
            "op": event.op,
            "startedAt": event.started_at,
            "durationMs": event.duration_ms,
            "data": result,
            "warnings": ctx.warnings,
        }
        if ctx.effect is not None:
            envelope["effect"] = ctx.effect
        return Reply(envelope, ctx.attachments)

    async def _failed(self, event: Event, started: float, error: LinkError) -> Reply:
        event.ok = False
        event.error_code = error.code
        if error.details.get("effect") == "unverifiable":
            # Sent to another computer and not answered: the history must not read as if nothing had happened.
            event.effect = "unverifiable"
        if event.decision == "allow" and error.code in ("permission_denied", "path_out_of_scope"):
            event.decision = "deny"
            event.reason = str(error.details.get("rule") or error.code)
        await self._close_failure(event, started)
        return Reply(
            {
                "ok": False,
                "operationId": event.operation_id,
                "scope": event.scope,
                "op": event.op,
                "startedAt": event.started_at,
                "durationMs": event.duration_ms,
                "error": failure_of(error.code, error.message, retryable=error.retryable, details=error.details),
            }
        )

    async def _left(self, event: Event, started: float, how: type[LinkError]) -> None:
        event.ok = False
        event.error_code = how.code
        await self._close_failure(event, started)

    async def _close_effect(self, ctx: Context, event: Event, started: float) -> None:
        try:
            await self._close(event, started)
        except AuditUnavailable as error:
            if not event.intended:
                # An observation that cannot be recorded is refused: nothing runs unrecorded.
                raise
            ctx.warn(f"This was done, and its intent is in the history; its outcome is not there yet. {error.message}")

    async def _close_failure(self, event: Event, started: float) -> None:
        # Not shielded: closing a record never waits, so a cancelled call is recorded all the same.
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


def _arm(scope: anyio.CancelScope, deadline: float) -> None:
    scope.deadline = deadline


def _config_refusal(error: ConfigInvalid) -> LinkError:
    """Nothing runs while the config is not valid."""
    return ExecutionFailed(f"Nothing runs while the config is not valid: {error.message}.", hint=error.hint)


async def _nothing_to_record() -> None:
    return None


def _event_for(scope: str, op: str, principal: Principal, parent: str | None) -> Event:
    return Event(
        operation_id=new_ulid(),
        started_at=_now(),
        scope=scope[:64],
        op=op[:64],
        principal=principal.id,
        session=principal.session,
        connection=principal.connection,
        client=principal.client,
        parent=parent,
    )


def _now() -> str:
    second, millisecond = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_date(second)}.{millisecond:03d}Z"


@lru_cache(maxsize=2)
def _date(second: int) -> str:
    """The date and time of one second; the calls of that second share it."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
