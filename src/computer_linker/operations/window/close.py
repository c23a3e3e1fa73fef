"""window.close: ask a window to close."""

from typing import Annotated

from pydantic import Field

from computer_linker.operations.desktop.definition import window_act
from computer_linker.providers.window_choice import window_by_id
from computer_linker.registry import Context, Example, Model


class ClosedWindow(Model):
    window_id: str
    closed: Annotated[bool, Field(description="False when it stayed: it may be asking whether to save.")]


@window_act(
    "window.close",
    "closed the window",
    Example("Close a window.", {"target": "0x1e00003"}, runs=False),
    destructive=True,
)
async def window_close(ctx: Context, target: str) -> ClosedWindow:
    """Ask a window to close, as its title bar's button does. Nothing is forced: unsaved work may be asked about."""
    known = window_by_id(await ctx.computer.windows.list(), target, ctx.scope.policy.excluded_applications)
    closed = await ctx.computer.windows.close(known.id)
    ctx.effect = "confirmed" if closed else "suspected_noop"
    return ClosedWindow(window_id=known.id, closed=closed)
