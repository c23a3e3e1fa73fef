"""desktop.abort: end a desktop operation that is under way."""

from typing import Annotated

from pydantic import Field

from computer_linker.providers.ui.executions import Executions
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class AbortedExecutions(Model):
    aborted: bool
    execution_ids: Annotated[list[str], Field(description="Those that were ended.")]


@operation(
    "desktop.abort",
    did="aborted its acts",
    needs_any={Capability.DESKTOP_OBSERVE, Capability.DESKTOP_CONTROL},
    effect=Effect.OBSERVE,
    on="computer",
    deadline_s=10,
    examples=[Example("End all that you have under way.", {})],
)
async def desktop_abort(ctx: Context, target: str | None = None) -> AbortedExecutions:
    """End one of your desktop operations by its execution id, or all of them.

    Keys and buttons are released, and when the answer comes no further one is pressed.
    """
    ended = await ctx.use(Executions).abort(target or None, ctx.scope.id, ctx.principal.id)
    ctx.note(aborted=len(ended))
    return AbortedExecutions(aborted=bool(ended), execution_ids=ended)
