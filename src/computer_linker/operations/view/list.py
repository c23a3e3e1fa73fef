"""view.list: the views that wait to be kept or dropped."""

from typing import Annotated

from anyio.to_thread import run_sync
from pydantic import Field

from computer_linker.model.times import shown_ns
from computer_linker.providers.views.store import Views
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes


class ViewFacts(Model):
    view_id: str
    op: Annotated[str, Field(description="The operation it was made for.")]
    command_preview: str
    created_at: str
    expires_at: Annotated[str, Field(description="When it is dropped, if it is not kept by then.")]
    changes: Annotated[
        int | None, Field(description="How many names it would change, as of the end of its last program; null before.")
    ]
    bytes: Annotated[int, Field(description="What it holds on disk, as of then.")]
    running: Annotated[bool, Field(description="True while a program runs in it.")]


class ViewPage(Model):
    views: list[ViewFacts]


@operation(
    "view.list",
    did="listed views",
    needs={Capability.FS_READ},
    effect=Effect.OBSERVE,
    text=shapes.VIEWS,
    examples=[Example("The views of this scope.", {})],
)
async def view_list(ctx: Context) -> ViewPage:
    """List the caller's views in this scope, the newest first. They are dropped seven days after their last program."""
    return ViewPage(views=await run_sync(_listed, ctx))


def _listed(ctx: Context) -> list[ViewFacts]:
    views = ctx.use(Views)
    return [
        ViewFacts(
            view_id=view.id,
            op=view.op,
            command_preview=view.command,
            created_at=view.created_at,
            expires_at=shown_ns(views.expires_ns(view.id)),
            changes=view.changed,
            bytes=view.stored,
            running=views.program_of(view.id) is not None,
        )
        for view in views.listed(ctx.scope.id, ctx.principal)
    ]
