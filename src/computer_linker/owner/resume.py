"""resume: give the desktop back to clients."""

from typing import Annotated

from pydantic import Field

from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.registry.owner import Context, Effect, Example, Model, owner_operation


class Resumed(Model):
    resumed: Annotated[bool, Field(description="False when nothing was halted.")]


@owner_operation(
    "resume",
    did="resumed the desktop",
    effect=Effect.CHANGE,
    where="service",
    text=lambda result: ["Clients may act on the desktop again." if result.resumed else "Nothing was halted."],
    examples=[Example("End a halt.", {})],
)
async def resume(ctx: Context) -> Resumed:
    """Let clients act on the desktop again."""
    resumed = ctx.use(Dispatcher).queues.resume()
    ctx.effect = "confirmed"
    return Resumed(resumed=resumed)
