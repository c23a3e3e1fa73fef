"""Events of the dispatcher: the start of one operation, and the fields of a failure."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Protocol

from computer_linker.approvals.approvals import Approver, Yes
from computer_linker.approvals.request import Denied
from computer_linker.audit.command_line import command_preview
from computer_linker.audit.secret import Key
from computer_linker.dispatch.pause import STOPPED
from computer_linker.errors import (
    Aborted,
    ConfigInvalid,
    ConfirmRequired,
    DeniedByPerson,
    InvalidRequest,
    LimitExceeded,
    LinkError,
    NoAnswer,
)
from computer_linker.model.effect import Effect
from computer_linker.model.envelope import Call, Reply, error_object
from computer_linker.model.event import NOT_SHOWN, WITHDRAWN, Event
from computer_linker.model.ids import new_ulid
from computer_linker.model.principal import FarClient, Principal
from computer_linker.registry.context import Progress
from computer_linker.registry.operation import Operation

_REFUSALS = ("permission_denied", "path_out_of_scope", "paused")


def new_event(scope: str, op: str, principal: Principal, parent: str | None) -> Event:
    """The event of an operation that begins now."""
    return Event(
        operation_id=new_ulid(),
        started_at=_now(),
        scope=scope[:64],
        op=op[:64],
        principal=principal.id,
        session=principal.session,
        connection=principal.connection,
        client=principal.client,
        request=principal.request,
        parent=parent,
    )


def head_of(event: Event) -> dict[str, Any]:
    """The fields that begin every envelope."""
    return {
        "ok": event.ok,
        "operationId": event.operation_id,
        "scope": event.scope,
        "op": event.op,
        "startedAt": event.started_at,
        "durationMs": event.duration_ms,
    }


def _now() -> str:
    second, millisecond = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_date(second)}.{millisecond:03d}Z"


@lru_cache(maxsize=2)
def _date(second: int) -> str:
    """The date and time of one second; the calls of that second share it."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def answer_of(event: Event, result: Any, warnings: list[str], error: LinkError | None) -> dict[str, Any]:
    """The envelope of a call that has a result; it may carry a failure too, such as that of a step."""
    envelope = {**head_of(event), "data": result, "warnings": warnings}
    if event.effect is not None:
        envelope["effect"] = event.effect
    if (given := event.approval) is not None:
        envelope["approval"] = {"by": given.by, "way": given.way, "extent": given.extent}
    if error is not None:
        envelope["error"] = error_object(error)
    return envelope


def mark_failed(event: Event, error: LinkError) -> None:
    """Record a failure in the event: its code, what it leaves unknown, and who or which rule refused it."""
    event.ok = False
    event.error_code = error.code
    if error.details.get("effect") == "unverifiable":
        # Sent to another computer and not answered: the history must not read as if nothing had happened.
        event.effect = "unverifiable"
    if isinstance(error, ConfirmRequired | DeniedByPerson | NoAnswer):
        # Denied, not answered in time, and no approver available are three different outcomes, each with its code.
        event.decision, event.reason = "ask", error.message
        event.approval = error.approval if isinstance(error, Denied) else None
    elif isinstance(error, LimitExceeded) and NOT_SHOWN in error.message:
        event.decision, event.reason = "ask", error.message
    elif isinstance(error, ConfigInvalid) and error.problems:
        # A change of the config that is not valid is refused whole.
        event.decision, event.reason = "deny", error.message
    elif event.decision in ("allow", "ask") and (error.code in _REFUSALS or error.details.get("rule") == STOPPED):
        event.decision = "deny"
        event.reason = str(error.details.get("rule") or error.code)
    elif event.reason is None and not event.scope and event.principal.startswith("cli:"):
        # An act of the owner that failed: no client reads its event, and the owner should see why.
        event.reason = error.message


def name_input(event: Event, op: Operation, arguments: Mapping[str, object]) -> None:
    """Record what a call is about, before it can fail: each input that its phrase names, and the scope of an owner's act."""
    for name in op.named if event.scope else ("scope", *op.named):
        value = getattr(arguments.get("input"), name, None)
        if isinstance(value, str):
            event.summary[name] = value


def mark_left(event: Event, op: Operation | None, error: type[LinkError]) -> None:
    """Record that the caller left: before anything began, while a person was asked or it was queued, it was withdrawn."""
    event.ok, event.error_code = False, error.code
    is_asked = event.decision == "ask" and event.approval is None
    if error is Aborted and op is not None and not event.intended and (is_asked or op.effect is not Effect.OBSERVE):
        event.reason = WITHDRAWN


def name_object(event: Event, op: Operation | None, call: Call) -> None:
    """Record what a failed request was about where that is not known yet: its target and command line, as far as they can
    be read. It may have been refused before it was parsed."""
    if op is None:
        return
    paths = call.input.get("paths") if isinstance(call.input, dict) else None
    if isinstance(paths, list) and paths and isinstance(paths[0], str):
        event.summary.setdefault("path", paths[0])
        event.summary.setdefault("files", len(paths))
    if event.target is not None or event.command_preview is not None:
        return
    if type(call.target) is str:
        event.target = call.target
    if op.runs is not None:
        with suppress(InvalidRequest):
            event.command_preview = command_preview(op.runs(op.parse(call.target, call.input, call.options)["input"]))


# Who calls the dispatcher, and where it sends calls for other computers.


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller, two callbacks to it while the call runs (progress and questions), and a yes that it comes with."""

    principal: Principal
    report: Progress | None
    ask: Approver | None
    yes: Yes | None = None


def far_client(who: Principal, key: Key) -> FarClient:
    """The caller as another computer gets it: a digest, so that it learns which calls are of one client and no more."""
    return FarClient(key.digest(f"far client {who.id}")[:8], (who.client or "")[:200])


class Routes(Protocol):
    """Routes calls to other computers."""

    async def call(self, computer: str, call: Call, report: Progress | None) -> Reply: ...
