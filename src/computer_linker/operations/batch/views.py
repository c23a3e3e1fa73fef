"""A batch on a view: its steps that run programs share one, and none changes the folder itself."""

from typing import TYPE_CHECKING

from computer_linker.errors import InvalidRequest
from computer_linker.model.effect import Effect
from computer_linker.operations.command.view import BATCH
from computer_linker.registry import Context
from computer_linker.registry.catalog import Catalog
from computer_linker.registry.operation import Operation

if TYPE_CHECKING:
    from computer_linker.operations.batch.run import BatchInput, BatchItem, BatchOptions


def on_view(ctx: Context, input: "BatchInput", options: "BatchOptions") -> "BatchInput":
    """The batch with the view in the options of its steps. Raises InvalidRequest for a step that would change the folder."""
    if not options.view:
        return input
    shared = f"{BATCH}{ctx.operation_id}" if options.view is True else options.view
    items = [_placed(ctx, item, shared) for item in input.operations]
    return input.model_copy(update={"operations": items})


def _placed(ctx: Context, item: "BatchItem", shared: str) -> "BatchItem":
    op = ctx.use(Catalog).by_name.get(item.op)
    if op is None:
        # Refused with its own error when it is reached.
        return item
    if takes_view(op):
        return item.model_copy(update={"options": {"view": shared, **(item.options or {})}})
    if op.effect is not Effect.OBSERVE and not op.name.startswith("view."):
        raise InvalidRequest(
            f"{item.op} would change the folder itself, so it cannot be a step of a batch on a view. Run a command instead.",
            field="view",
            op=item.op,
        )
    return item


def takes_view(op: Operation) -> bool:
    """True for an operation that can run on a view."""
    return "view" in getattr(op.hints.get("options"), "model_fields", {})
