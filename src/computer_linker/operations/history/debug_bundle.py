"""history.debug_bundle: what a person may send along with a question, redacted."""

from typing import Any

from computer_linker.operations.history.request import HistoryInput, HistoryOptions, HistoryPage, ask
from computer_linker.registry import Capability, Context, Effect, Example, operation


class DebugBundle(HistoryPage):
    bundle: dict[str, Any]


@operation(
    "history.debug_bundle",
    did="made a debug bundle",
    needs={Capability.HISTORY_READ},
    effect=Effect.OBSERVE,
    on="any",
    examples=[Example("A bundle with the last 20 events.", {"options": {"limit": 20}})],
)
async def history_debug_bundle(
    ctx: Context, input: HistoryInput = HistoryInput(), options: HistoryOptions = HistoryOptions()
) -> DebugBundle:
    """Gather versions, this scope's settings without secrets, the state of the history and its newest events."""
    return DebugBundle.from_wire(await ask(ctx, "debug_bundle", input, options))
