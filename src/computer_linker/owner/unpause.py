"""unpause: end a pause of all clients."""

from typing import Annotated

from pydantic import Field

from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.registry.owner import Context, Effect, Example, Model, owner_operation


class PauseEnded(Model):
    ended: Annotated[bool, Field(description="False when nothing was paused.")]


@owner_operation(
    "unpause",
    did="let clients work again",
    effect=Effect.CHANGE,
    text=lambda result: ["Clients may go on." if result.ended else "Nothing was paused."],
    examples=[Example("End a pause.", {})],
)
async def unpause(ctx: Context) -> PauseEnded:
    """End a pause: clients may use what their scopes allow again."""
    ended = ctx.use(Dispatcher).pause.end()
    ctx.effect = "confirmed"
    ctx.note(unchanged=not ended)
    return PauseEnded(ended=ended)
