"""history.failed_replay: failed operations as templates to try again."""

from typing import Annotated

from pydantic import Field

from computer_linker.model.history import ReplayTemplate
from computer_linker.operations.history.request import HistoryInput, HistoryOptions, HistoryPage, ask
from computer_linker.registry import Capability, Context, Effect, Example, operation, shapes


class FailedReplay(HistoryPage):
    templates: Annotated[
        list[ReplayTemplate], Field(description="One request each; requiresInput names what the history did not keep.")
    ]


@operation(
    "history.failed_replay",
    did="read what failed",
    needs={Capability.HISTORY_READ},
    effect=Effect.OBSERVE,
    text=shapes.EVENTS,
    on="any",
    examples=[Example("What failed, ready to try again.", {})],
)
async def history_failed_replay(
    ctx: Context, input: HistoryInput = HistoryInput(), options: HistoryOptions = HistoryOptions()
) -> FailedReplay:
    """Give a template for each failed operation. Contents, arguments and prompts are not kept and have to be supplied."""
    return FailedReplay.from_wire(await ask(ctx, "failed_replay", input, options))
