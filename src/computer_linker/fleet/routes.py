"""Routes calls to machines of a fleet: one by name or id, or all that match a query."""

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic_core import to_json

from computer_linker.errors import InvalidRequest, LimitExceeded, LinkError, NotFound
from computer_linker.fleet.hub import Hub
from computer_linker.fleet.machines import Machine, is_query, parse
from computer_linker.model.effect import Effect
from computer_linker.model.envelope import Call, Reply, failure_of, wire_call
from computer_linker.model.ids import new_ulid
from computer_linker.model.principal import FarClient
from computer_linker.registry.catalog import Catalog
from computer_linker.registry.context import Progress

_DEADLINE_S = 1800.0
_MAX_TOTAL = 6 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Result:
    """The result of a call on one machine of many."""

    machine: Machine
    state: Literal["answered", "late", "unreachable"]
    reply: Reply | None
    error: LinkError | None

    @property
    def effect(self) -> str | None:
        if self.reply is not None:
            effect = self.reply.envelope.get("effect")
        else:
            effect = self.error.details.get("effect") if self.error is not None else None
        return str(effect) if effect is not None else None


class FleetRoutes:
    """Calls through a hub."""

    def __init__(self, hub: Hub, catalog: Catalog) -> None:
        self._hub, self._catalog = hub, catalog

    def computers(self) -> list[dict[str, Any]]:
        """The machines of the fleet, each with its current state."""
        return self._hub.machines.listing()

    async def call(self, computer: str, call: Call, report: Progress | None) -> Reply:
        """Run the call on the machine, or on all that match a query."""
        if is_query(computer):
            if call.stream is not None:
                raise InvalidRequest("A file is copied to or from one machine at a time; name it.")
            return await self._fan_out(computer, call, report)
        machine = self._hub.machines.find(computer)
        return await self._hub.call(
            machine, wire_call(call), _DEADLINE_S, observes=self._observes(call), flow=call.stream, far=call.far
        )

    def _observes(self, call: Call) -> bool:
        op = self._catalog.by_name.get(call.op)
        return op is not None and op.effect is Effect.OBSERVE

    async def _fan_out(self, address: str, call: Call, report: Progress | None) -> Reply:
        """Run the call on every matching machine, concurrently and under one deadline; the answer has every machine."""
        query = parse(address)
        machines = self._hub.machines.matching(query)
        if not machines:
            raise NotFound("No machine of this fleet fits that query.", query=address)
        started, at = time.perf_counter(), datetime.now(UTC).isoformat(timespec="milliseconds")
        wire, observes, done = wire_call(call), self._observes(call), 0

        async def one(machine: Machine) -> _Result:
            nonlocal done
            result = await self._on(machine, wire, query.within_s, call.far, observes=observes)
            done += 1
            if report is not None:
                report(f"{machine.known.name}: {result.state}", done, len(machines))
            return result

        results = await asyncio.gather(*(one(machine) for machine in machines))
        envelope: dict[str, Any] = {
            "ok": True, "operationId": new_ulid(), "scope": f"{address}/{call.scope}", "op": call.op,
            "startedAt": at.replace("+00:00", "Z"), "durationMs": round((time.perf_counter() - started) * 1000, 3),
            **_combined(results),
        }  # fmt: skip
        if not observes:
            envelope["effect"] = _joint_effect(results)
        return Reply(envelope, [item for result in results if result.reply for item in result.reply.attachments])

    async def _on(
        self, machine: Machine, wire: dict[str, Any], within_s: float, far: FarClient | None, *, observes: bool
    ) -> _Result:
        try:
            reply = await self._hub.call(machine, wire, within_s, observes=observes, far=far)
        except LinkError as error:
            return _Result(machine, "late" if error.code == "timeout" else "unreachable", None, error)
        return _Result(machine, "answered", reply, None)


def _combined(results: list[_Result]) -> dict[str, Any]:
    entries: list[dict[str, Any]] = []
    total = 0
    for result in results:
        entry: dict[str, Any] = {
            "machine": result.machine.known.name, "machineId": result.machine.known.machine_id, "state": result.state,
        }  # fmt: skip
        error = result.error
        if result.reply is not None:
            total += len(to_json(result.reply.envelope))
            if total <= _MAX_TOTAL:
                entry["envelope"] = result.reply.envelope
                entry["attachments"] = len(result.reply.attachments)
            else:
                error = LimitExceeded("The answers are too large together; ask fewer machines, or this one by itself.")
        if error is not None:
            entry["error"] = failure_of(error.code, error.message, retryable=error.retryable, details=error.details)
        entries.append(entry)
    counts = {state: sum(r.state == state for r in results) for state in ("answered", "late", "unreachable")}
    failed = sum(1 for result in results if result.reply is None or not result.reply.ok)
    warnings = [
        f"{counts[state]} of {len(results)} machines: {state}." for state in ("late", "unreachable") if counts[state]
    ]
    if refused := failed - counts["late"] - counts["unreachable"]:
        warnings.append(f"{refused} of {len(results)} machines answered that they did not do it; see their results.")
    return {"data": {"matched": len(results), **counts, "failed": failed, "results": entries}, "warnings": warnings}


def _joint_effect(results: list[_Result]) -> str:
    """The effect word for all: the weakest of the single ones."""
    effects = {result.effect for result in results}
    if "unverifiable" in effects:
        return "unverifiable"
    if len(effects) == 1 and None not in effects:
        return str(effects.pop())
    return "suspected_noop" if effects == {None} else "partial"
