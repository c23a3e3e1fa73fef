"""history.last: the newest operations of this scope, and what to do next."""

from typing import Annotated

from pydantic import Field

from computer_linker.model.history import Suggestion
from computer_linker.operations.history.request import HistoryInput, HistoryOptions, HistoryPage, ask
from computer_linker.registry import Capability, Context, Effect, Example, operation, shapes


class LastOperations(HistoryPage):
    suggestions: Annotated[list[Suggestion], Field(description="What to do next, from the newest events.")]


@operation(
    "history.last",
    did="read the history",
    needs={Capability.HISTORY_READ},
    effect=Effect.OBSERVE,
    text=shapes.EVENTS,
    on="any",
    examples=[Example("The last three operations.", {"options": {"limit": 3}})],
)
async def history_last(
    ctx: Context, input: HistoryInput = HistoryInput(), options: HistoryOptions = HistoryOptions()
) -> LastOperations:
    """Tell the newest operations of this scope first, with suggestions for what to do next."""
    return LastOperations.from_wire(await ask(ctx, "last", input, options))
