"""call.stop: end one running call of a client."""

from typing import Annotated

from pydantic import Field

from computer_linker.dispatch.live_sessions import LiveSessions
from computer_linker.errors import NotFound
from computer_linker.registry.owner import Context, Effect, Example, Model, Positional, owner_operation


class StopInput(Model):
    operation: Annotated[str, Field(description="The operation's id, as the history shows it."), Positional()]


class CallStopped(Model):
    operation: str


@owner_operation(
    "call.stop",
    did="stopped the call {call}",
    effect=Effect.CHANGE,
    where="running",
    text=lambda result: [f"Stopped {result.operation}."],
    examples=[Example("Stop it.", {"input": {"operation": "01KA00000000000000000000AA"}}, runs=False)],
)
async def call_stop(ctx: Context, input: StopInput) -> CallStopped:
    """End one call of a client while it runs; its answer to the client names the owner as the reason."""
    ctx.note(stopped=input.operation[:64])
    whose = await ctx.use(LiveSessions).stop_call(input.operation)
    if whose is None:
        raise NotFound("No call of a client runs under that id.", hint="computer-linker call list shows those that run")
    ctx.note(clients=whose.client or whose.id)
    ctx.effect = "confirmed"
    return CallStopped(operation=input.operation)
