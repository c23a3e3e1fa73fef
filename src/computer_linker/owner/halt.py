"""halt: take the desktop back from every client."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.registry.owner import Context, Effect, Example, Model, Note, Shown, owner_operation

_STILL_S = 5.0


class Halted(Model):
    ended: Annotated[int, Field(description="Acts that were under way.")]
    still: Annotated[bool, Field(description="False when one of them has not stopped yet.")]


def _text(result: Halted) -> Iterator[Shown]:
    yield f"Halted; {result.ended} ended. No client acts on the desktop until: computer-linker resume"
    if not result.still:
        yield Note("One act was told to stop and has not stopped yet.")


@owner_operation(
    "halt",
    did="halted the desktop",
    effect=Effect.CHANGE,
    where="service",
    text=_text,
    examples=[Example("Stop every act.", {})],
)
async def halt(ctx: Context) -> Halted:
    """Stop every act on the desktop now, release what is held, and refuse new ones until `resume`."""
    queues = ctx.use(Dispatcher).queues
    ended = queues.halt()
    still = await queues.until_still(_STILL_S)
    ctx.effect = "confirmed" if still else "partial"
    ctx.note(ended=ended)
    return Halted(ended=ended, still=still)
