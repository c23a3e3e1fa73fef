"""history.summary: the operations of this scope in numbers."""

from computer_linker.model.history import HistorySummary
from computer_linker.operations.history.request import HistoryInput, HistoryOptions, HistoryPage, ask
from computer_linker.registry import Capability, Context, Effect, Example, operation


class Summary(HistoryPage):
    summary: HistorySummary


@operation(
    "history.summary",
    did="read the history",
    needs={Capability.HISTORY_READ},
    effect=Effect.OBSERVE,
    on="any",
    examples=[Example("How much was done, and how much failed.", {"options": {"limit": 1}})],
)
async def history_summary(
    ctx: Context, input: HistoryInput = HistoryInput(), options: HistoryOptions = HistoryOptions()
) -> Summary:
    """Count the newest operations of this scope by operation, client and error, beside the newest of them."""
    return Summary.from_wire(await ask(ctx, "summary", input, options))
