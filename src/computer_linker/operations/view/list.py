"""view.list: the views that wait to be kept or dropped."""

from typing import Annotated

from anyio.to_thread import run_sync
from pydantic import Field

from computer_linker.providers.views.store import Views
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class ViewFacts(Model):
    view_id: str
    op: Annotated[str, Field(description="The operation it was made for.")]
    command_preview: str
    created_at: str
    running: Annotated[bool, Field(description="True while a program runs in it.")]


class ViewPage(Model):
    views: list[ViewFacts]


@operation(
    "view.list",
    needs={Capability.FS_READ},
    effect=Effect.OBSERVE,
    examples=[Example("The views of this scope.", {})],
)
async def view_list(ctx: Context) -> ViewPage:
    """List the caller's views in this scope, the newest first. They are dropped after seven days."""
    views = ctx.use(Views)
    found = await run_sync(views.listed, ctx.scope.id, ctx.principal)
    return ViewPage(
        views=[
            ViewFacts(
                view_id=view.id,
                op=view.op,
                command_preview=view.command,
                created_at=view.created_at,
                running=views.is_running(view.id),
            )
            for view in found
        ]
    )
