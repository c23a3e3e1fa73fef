"""history.timeline: the operations of this scope in the order they came."""

from computer_linker.operations.history.request import HistoryInput, HistoryOptions, HistoryPage, ask
from computer_linker.registry import Capability, Context, Effect, Example, operation, shapes


class Timeline(HistoryPage):
    """Events, oldest first."""


@operation(
    "history.timeline",
    did="read the history",
    needs={Capability.HISTORY_READ},
    effect=Effect.OBSERVE,
    text=shapes.EVENTS,
    on="any",
    examples=[Example("Everything that failed.", {"input": {"query": "ok:false"}})],
)
async def history_timeline(
    ctx: Context, input: HistoryInput = HistoryInput(), options: HistoryOptions = HistoryOptions()
) -> Timeline:
    """Tell the operations of this scope from the oldest on, page by page."""
    return Timeline.from_wire(await ask(ctx, "timeline", input, options))
