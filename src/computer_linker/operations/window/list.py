"""window.list: the windows on the desktop."""

from typing import Annotated

from pydantic import Field

from computer_linker.model.geometry import Window
from computer_linker.providers.shots import is_excluded
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class WindowList(Model):
    windows: Annotated[list[Window], Field(description="The topmost first.")]


@operation(
    "window.list",
    did="listed windows",
    needs_any={Capability.DESKTOP_OBSERVE, Capability.DESKTOP_CONTROL, Capability.SCREEN_CAPTURE},
    effect=Effect.OBSERVE,
    on="computer",
    deadline_s=15,
    facets=("windows",),
    examples=[Example("List the windows.", {}, runs=False)],
)
async def window_list(ctx: Context) -> WindowList:
    """List the windows with title, application, process, place and state; the topmost comes first."""
    excluded = ctx.scope.policy.excluded_applications
    windows = [one for one in await ctx.computer.windows.list() if not is_excluded(one, excluded)]
    ctx.note(windows=len(windows))
    return WindowList(windows=windows)
