"""history.connections: the operations of this scope grouped by connection."""

from typing import Annotated

from pydantic import Field

from computer_linker.model.history import HistoryGroup
from computer_linker.operations.history.request import HistoryInput, HistoryOptions, HistoryPage, ask
from computer_linker.registry import Capability, Context, Effect, Example, operation, shapes


class Connections(HistoryPage):
    connections: list[HistoryGroup]
    grouped_events: Annotated[int, Field(description="Events the groups were made of, the newest ones.")]


@operation(
    "history.connections",
    did="read the history",
    needs={Capability.HISTORY_READ},
    effect=Effect.OBSERVE,
    text=shapes.EVENTS,
    on="any",
    examples=[Example("Which links were used.", {})],
)
async def history_connections(
    ctx: Context, input: HistoryInput = HistoryInput(), options: HistoryOptions = HistoryOptions()
) -> Connections:
    """Group the newest operations of this scope by client and the connection it came over, with tunnel and request ids."""
    return Connections.from_wire(await ask(ctx, "connections", input, options))
