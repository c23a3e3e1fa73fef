"""view.drop: throw away what a view changed."""

from anyio.to_thread import run_sync

from computer_linker.model.base import Model
from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect
from computer_linker.providers.views.store import Views
from computer_linker.registry import Context, Example, operation


class Dropped(Model):
    view_id: str
    dropped: bool


@operation(
    "view.drop",
    needs={Capability.COMMAND_RUN},
    effect=Effect.CHANGE,
    destructive=True,
    examples=[Example("Drop a view.", {"target": "01M7M8DX489Z9FBH6T8B0F3QGF"}, runs=False)],
)
async def view_drop(ctx: Context, target: str) -> Dropped:
    """Throw away the view `target` with everything in it; the folder stays as it is. This cannot be taken back."""
    views = ctx.use(Views)
    view = await run_sync(views.find, target, ctx.scope.id, ctx.principal)
    with views.busy(view):
        is_gone = await run_sync(views.drop, view)
    ctx.effect = "confirmed" if is_gone else "partial"
    ctx.note(viewId=view.id)
    return Dropped(view_id=view.id, dropped=is_gone)
