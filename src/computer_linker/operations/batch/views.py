"""A batch on a view: its steps that run programs share one, and none changes the folder itself."""

from typing import TYPE_CHECKING, Literal

from computer_linker.errors import InvalidRequest
from computer_linker.model.effect import Effect
from computer_linker.operations.command.view import BATCH, OF_BATCH
from computer_linker.registry import Context
from computer_linker.registry.catalog import Catalog
from computer_linker.registry.operation import Operation

if TYPE_CHECKING:
    from computer_linker.operations.batch.run import BatchInput, BatchItem, BatchOptions


def on_view(ctx: Context, input: "BatchInput", options: "BatchOptions") -> "BatchInput":
    """The batch with the view in the options of its steps. Raises InvalidRequest for a step that would change the folder."""
    if not options.view:
        return input
    items = [_placed(ctx, item, options.view) for item in input.operations]
    return input.model_copy(update={"operations": items})


def _placed(ctx: Context, item: "BatchItem", view: Literal[True] | str) -> "BatchItem":
    op = ctx.use(Catalog).by_name.get(item.op)
    if op is None:
        # Refused with its own error when it is reached.
        return item
    if takes_view(op):
        options = item.options or {}
        if options.get("view", view) != view:
            raise InvalidRequest(
                f"{item.op} asks for another view than the batch. Leave `view` out of the step.",
                field="view",
                op=item.op,
            )
        return item.model_copy(update={"options": {**options, "view": _shared(ctx, item) if view is True else view}})
    if op.effect is not Effect.OBSERVE and not op.name.startswith("view."):
        raise InvalidRequest(
            f"{item.op} would change the folder itself, so it cannot be a step of a batch on a view. Run a command instead.",
            field="view",
            op=item.op,
        )
    return item


def _shared(ctx: Context, item: "BatchItem") -> str:
    # Another computer does not know which batch the step is of.
    return f"{BATCH}{ctx.operation_id}" if "/" in (item.scope or ctx.scope.id) else OF_BATCH


def takes_view(op: Operation) -> bool:
    """True for an operation that can run on a view."""
    return "view" in getattr(op.hints.get("options"), "model_fields", {})
