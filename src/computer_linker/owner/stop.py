"""stop: end the running service."""

from computer_linker.registry.owner import Context, Effect, Example, Model, Note, owner_operation
from computer_linker.service.lifetime import Lifetime


class Stopping(Model):
    stopping: bool


@owner_operation(
    "stop",
    did="stopped the service",
    effect=Effect.CHANGE,
    where="running",
    idle=Stopping(stopping=False),
    text=lambda result: [Note("The service is ending." if result.stopping else "No service runs.")],
    examples=[Example("End the service.", {}, runs=False)],
)
async def stop(ctx: Context) -> Stopping:
    """End the service of this state folder, letting what is under way finish or stop cleanly."""
    ctx.use(Lifetime).end()
    # It ends after this answer, so its end is not confirmed yet.
    ctx.effect = "unverifiable"
    return Stopping(stopping=True)
