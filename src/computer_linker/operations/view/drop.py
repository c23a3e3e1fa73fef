"""view.drop: throw away what a view changed."""

from typing import Annotated

from anyio.to_thread import run_sync
from pydantic import Field

from computer_linker.approvals.request import Preview
from computer_linker.operations.view.evidence import EvidenceOption, keep_evidence, refuse_without_right
from computer_linker.operations.view.summary import summarised
from computer_linker.policy.digest import digest_of_parts
from computer_linker.policy.visible_text import escaped
from computer_linker.providers.views.reading import ViewReader
from computer_linker.providers.views.store import Views
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class DropOptions(Model):
    evidence: EvidenceOption = False


class Dropped(Model):
    view_id: str
    dropped: bool
    artifact: Annotated[str | None, Field(description="The evidence that was asked for.")] = None


async def show_drop(ctx: Context, target: str, options: DropOptions = DropOptions()) -> Preview:
    """The changes that would be thrown away."""
    view = await run_sync(ctx.use(Views).find, target, ctx.scope.id, ctx.principal)
    reader = ViewReader.of(ctx, view)
    found = await run_sync(reader.changes)
    head = escaped(f"throws away what this command changed: {view.command}")
    lines = await summarised(ctx, reader, found, found, {})
    return Preview((head, *lines), {view.id: digest_of_parts(*map(repr, found))})


@operation(
    "view.drop",
    did="dropped the view",
    needs_any={Capability.COMMAND_RUN, Capability.PACKAGE_RUN, Capability.CODEX_RUN},
    effect=Effect.CHANGE,
    destructive=True,
    awaits_intent=True,
    asked_by=lambda policy: policy.outcome == "ask",
    shows=show_drop,
    examples=[Example("Drop a view.", {"target": "01M7M8DX489Z9FBH6T8B0F3QGF"}, runs=False)],
)
async def view_drop(ctx: Context, target: str, options: DropOptions = DropOptions()) -> Dropped:
    """Throw away the view `target` with everything in it; the folder stays as it is. This cannot be taken back."""
    views = ctx.use(Views)
    refuse_without_right(ctx, wanted=options.evidence)
    view = await run_sync(views.find, target, ctx.scope.id, ctx.principal)
    with views.busy(view):
        reader = ViewReader.of(ctx, view) if options.evidence else None
        found = [] if reader is None else await run_sync(reader.changes)
        lines = [] if reader is None else await summarised(ctx, reader, found, found, {})
        await ctx.durable_intent()
        # First: when it cannot be stored, the view is still there.
        artifact = await keep_evidence(ctx, view, "dropped", lines) if options.evidence else None
        is_gone = await run_sync(views.drop, view)
    ctx.effect = "confirmed" if is_gone else "partial"
    ctx.note(viewId=view.id)
    return Dropped(view_id=view.id, dropped=is_gone, artifact=artifact)
