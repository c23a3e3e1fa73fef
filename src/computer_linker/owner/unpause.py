"""unpause: end a pause of all clients."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.registry.owner import Context, Effect, Example, Model, Shown, owner_operation


class PauseEnded(Model):
    ended: Annotated[bool, Field(description="False when nothing was paused.")]


def _text(result: PauseEnded) -> Iterator[Shown]:
    yield "Clients may go on." if result.ended else "Nothing was paused."


@owner_operation("unpause", effect=Effect.CHANGE, text=_text, examples=[Example("End a pause.", {})])
async def unpause(ctx: Context) -> PauseEnded:
    """End a pause: clients may use what their scopes allow again."""
    ended = ctx.use(Dispatcher).pause.end()
    ctx.effect = "confirmed"
    return PauseEnded(ended=ended)
