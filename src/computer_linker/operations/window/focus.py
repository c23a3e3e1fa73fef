"""window.focus: bring a window to the front."""

from computer_linker.model.geometry import Window
from computer_linker.operations.desktop.definition import window_act
from computer_linker.providers.window_choice import window_by_id
from computer_linker.registry import Context, Example, Model


class FocusedWindow(Model):
    window: Window


@window_act(
    "window.focus", "focused the window", Example("Bring a window to the front.", {"target": "0x1e00003"}, runs=False)
)
async def window_focus(ctx: Context, target: str) -> FocusedWindow:
    """Raise a window, restore it when it is minimized, and give it the keyboard."""
    known = window_by_id(await ctx.computer.windows.list(), target, ctx.scope.policy.excluded_applications)
    window = await ctx.computer.windows.focus(known.id)
    ctx.effect = "confirmed" if window.is_focused else "suspected_noop"
    return FocusedWindow(window=window)
