"""approvals.close: end an approval page that a browser has open."""

from typing import Annotated

from pydantic import Field

from computer_linker.errors import NotFound
from computer_linker.registry.owner import Context, Effect, Example, Model, Positional, owner_operation


class CloseInput(Model):
    page: Annotated[
        str | None,
        Field(description="The id that approvals list shows; without it, every opened page and every unused link."),
        Positional(),
    ] = None


class Closed(Model):
    closed: Annotated[int, Field(description="How many opened pages were ended.")]


@owner_operation(
    "approvals.close",
    did="closed approval pages[: {page}]",
    effect=Effect.CHANGE,
    where="service",
    text=lambda result: [f"Closed {result.closed} page{'' if result.closed == 1 else 's'}."],
    examples=[Example("No page answers for you any more.", {})],
)
async def approvals_close(ctx: Context, input: CloseInput = CloseInput()) -> Closed:
    """End an opened approval page, or all of them: that browser can answer nothing more."""
    from computer_linker.transports.http.approval_page import ApprovalPage

    page = ctx.services.peek(ApprovalPage)
    closed = 0 if page is None else page.close(input.page)
    if input.page is not None and not closed:
        raise NotFound(f"There is no opened page {input.page[:60]!r}.", hint="computer-linker approvals list")
    ctx.note(page=input.page, closed=closed)
    ctx.effect = "confirmed"
    return Closed(closed=closed)
