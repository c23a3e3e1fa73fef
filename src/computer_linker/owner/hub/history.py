"""hub.history: what happened on the machines of the fleet."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from computer_linker.registry.owner import Context, Effect, Example, Model, Positional, Shown, Table, owner_operation
from computer_linker.service.fleet import FleetManager

Fact = str | int | float | bool | None


class HistoryInput(Model):
    machines: Annotated[
        str, Field(description="MACHINE, MACHINE/SCOPE, a query such as [os=linux], or [all]."), Positional()
    ] = "[all]"
    view: Annotated[str, Field(description="last, timeline or verify.")] = "last"
    query: Annotated[str | None, Field(description="As for: computer-linker history.")] = None
    limit: Annotated[int, Field(ge=1, le=500, description="How many events.")] = 50


class Problem(Model):
    at: str | None
    number: int | None
    problem: str


class MachineHistory(Model):
    """Whether the stored history of one machine is complete."""

    machine: str
    machine_id: str
    valid: bool
    records: int
    begins_at: int | None
    last: int
    missing: int
    first_bad: int | None
    problem: str | None
    problems: list[Problem]


class FleetHistory(Model):
    """Events of the history. Other machines wrote their fields, so no type is assumed."""

    view: str
    events: list[dict[str, Fact | dict[str, Fact]]]
    next_cursor: str | None
    valid: bool | None = None
    machines: list[MachineHistory] | None = None


def _text(result: FleetHistory) -> Iterator[Shown]:
    if result.machines is not None:
        rows = [
            (one.machine, "ok" if one.valid else "error", str(one.records), one.problem or "")
            for one in result.machines
        ]
        yield Table(rows, ("machine", "history", "records", "problem"))
        return
    shown = ("startedAt", "scope", "op", "outcome", "target")
    yield Table([[str(event.get(name) or "") for name in shown] for event in result.events])


@owner_operation(
    "hub.history",
    effect=Effect.OBSERVE,
    where="service",
    text=_text,
    exit_code=lambda result: 1 if result.valid is False else 0,
    examples=[Example("What happened lately.", {"input": {"limit": 20}}, runs=False)],
)
async def hub_history(ctx: Context, input: HistoryInput = HistoryInput()) -> FleetHistory:
    """What happened on all machines, those that are away too."""
    is_address = "/" in input.machines or input.machines.startswith("[")
    address = input.machines if is_address else f"{input.machines}/"
    answer = await ctx.use(FleetManager).history(address, input.view, input.limit, input.query, None)
    return FleetHistory.from_wire(answer)
