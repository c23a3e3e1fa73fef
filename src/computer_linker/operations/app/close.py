"""app.close: ask an application to close."""

from typing import Annotated

from pydantic import Field

from computer_linker.operations.app.preview import show_running
from computer_linker.providers.window_choice import running_app
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class ClosedApp(Model):
    app_id: str
    closed: Annotated[bool, Field(description="False when a window stayed: it may be asking whether to save.")]


@operation(
    "app.close",
    did="closed the application",
    needs={Capability.APP_CONTROL},
    effect=Effect.ACT,
    on="computer",
    shows=show_running,
    deadline_s=30,
    destructive=True,
    facets=("apps",),
    examples=[Example("Close an editor.", {"target": "org.xfce.mousepad"}, runs=False)],
)
async def app_close(ctx: Context, target: str) -> ClosedApp:
    """Ask all windows of an application to close, as a person would. Nothing is forced."""
    app = await running_app(ctx.computer, target, ctx.scope.policy.excluded_applications)
    closed = await ctx.computer.apps.close(app.id)
    ctx.effect = "confirmed" if closed else "suspected_noop"
    return ClosedApp(app_id=app.id, closed=closed)
