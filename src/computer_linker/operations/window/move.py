"""window.move: place and resize a window."""

from typing import Annotated

from pydantic import Field

from computer_linker.model.geometry import Rect, Whole, Window
from computer_linker.operations.desktop.definition import window_act
from computer_linker.providers.window_choice import window_by_id
from computer_linker.registry import Context, Example, Model

Size = Annotated[int, Field(ge=1, le=32_767)]


class MoveInput(Model):
    """The new place of the content; what is left out stays as it is."""

    x: Whole | None = None
    y: Whole | None = None
    width: Size | None = None
    height: Size | None = None


class MovedWindow(Model):
    window: Window


@window_act(
    "window.move",
    "moved the window",
    Example(
        "Move and resize.",
        {"target": "0x1e00003", "input": {"x": 10, "y": 40, "width": 800, "height": 600}},
        runs=False,
    ),
)
async def window_move(ctx: Context, target: str, input: MoveInput) -> MovedWindow:
    """Move a window's content to `x`, `y` and resize it; the answer says where it came to lie."""
    known = window_by_id(await ctx.computer.windows.list(), target, ctx.scope.policy.excluded_applications)
    wanted = _merged(known.bounds, input)
    window = await ctx.computer.windows.place(known.id, wanted)
    if window.bounds == wanted:
        ctx.effect = "confirmed"
    else:
        # A program may round its size to whole characters, or a tiling window manager may override it.
        ctx.effect = "suspected_noop" if window.bounds == known.bounds else "partial"
    return MovedWindow(window=window)


def _merged(now: Rect, wanted: MoveInput) -> Rect:
    return Rect(
        x=now.x if wanted.x is None else wanted.x,
        y=now.y if wanted.y is None else wanted.y,
        width=wanted.width or now.width,
        height=wanted.height or now.height,
    )
