"""history.verify: whether the whole history is still what was written."""

from typing import Annotated

from pydantic import Field

from computer_linker.operations.history.request import HistoryInput, HistoryOptions, HistoryPage, ask
from computer_linker.registry import Capability, Context, Effect, Example, operation


class Verified(HistoryPage):
    valid: bool
    records: Annotated[int | None, Field(description="Records whose link was checked; like all below, for the owner.")]
    begins_at: Annotated[int | None, Field(description="From this number on every record is kept.")]
    kept: Annotated[int | None, Field(description="Records kept from before `beginsAt`; the others were pruned.")]
    first_bad: Annotated[int | None, Field(description="The number of the first record that is not what was written.")]
    problem: str | None
    operation_id: str | None


@operation(
    "history.verify",
    did="verified the history",
    needs={Capability.HISTORY_READ},
    effect=Effect.OBSERVE,
    on="any",
    deadline_s=None,
    examples=[Example("Check the whole chain.", {})],
)
async def history_verify(ctx: Context) -> Verified:
    """Check every link of the history. The owner is also told the first record that was edited, swapped, cut or left out."""
    return Verified.from_wire(await ask(ctx, "verify", HistoryInput(), HistoryOptions()))
