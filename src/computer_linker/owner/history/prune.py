"""history.prune: remove old events."""

from functools import partial
from typing import Annotated

from anyio import to_thread
from pydantic import Field

from computer_linker.errors import InvalidRequest
from computer_linker.registry.owner import Context, Effect, Example, Model, owner_operation


class PruneInput(Model):
    older_than: Annotated[str | None, Field(description="Remove what is older: 90d, 12h.")] = None
    max_size: Annotated[str | None, Field(description="Keep at most this much: 200MB, 1GB.")] = None


class Pruned(Model):
    removed: Annotated[int, Field(description="How many records.")]


@owner_operation(
    "history.prune",
    did="pruned the history[: {removed} events removed]",
    effect=Effect.CHANGE,
    text=lambda result: [f"{result.removed} records removed."],
    deadline_s=None,
    examples=[Example("Keep three months.", {"input": {"olderThan": "90d"}})],
)
async def history_prune(ctx: Context, input: PruneInput = PruneInput()) -> Pruned:
    """Remove old events, whole segments at a time; what stays can still be verified. The prune itself is in the history."""
    from computer_linker.audit.prune import bytes_of, prune, time_of

    if input.older_than is None and input.max_size is None:
        raise InvalidRequest("Say what to remove.", hint="for example --older-than 90d, or --max-size 200MB")
    before = None if input.older_than is None else time_of(input.older_than)
    size = None if input.max_size is None else bytes_of(input.max_size)
    work = partial(prune, ctx.services.home / "audit", before=before, max_bytes=size, by=ctx.operation_id)
    removed = await to_thread.run_sync(work)
    ctx.effect = "confirmed"
    ctx.note(removed=removed)
    return Pruned(removed=removed)
