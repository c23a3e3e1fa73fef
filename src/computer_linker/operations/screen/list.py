"""screen.list: what can be captured here."""

from typing import Annotated, Literal

from pydantic import Field

from computer_linker.computer.base import Computer
from computer_linker.model.geometry import Display, Rect, Window
from computer_linker.providers.shots import is_excluded
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class Permission(Model):
    status: Literal["granted", "denied", "unknown"]
    detail: str | None = None


class ListedDisplay(Model):
    id: str
    name: str
    primary: bool
    width: Annotated[int, Field(description="Pixels.")]
    height: Annotated[int, Field(description="Pixels.")]
    scale: float
    bounds: Annotated[Rect, Field(description="Its place on the desktop, in desktop units.")]


class ListedWindow(Model):
    id: str
    title: str
    process_id: int | None
    process_name: str
    app: str
    bounds: Rect
    focused: bool
    visible: bool


class ScreenList(Model):
    permission: Permission
    displays: list[ListedDisplay]
    windows: Annotated[list[ListedWindow], Field(description="The topmost first.")]


@operation(
    "screen.list",
    did="listed displays and windows",
    needs={Capability.SCREEN_CAPTURE},
    effect=Effect.OBSERVE,
    on="computer",
    deadline_s=15,
    facets=("screen",),
    examples=[Example("List displays and windows.", {}, runs=False)],
)
async def screen_list(ctx: Context) -> ScreenList:
    """List the displays and windows that can be captured, and whether the system permits it."""
    policy = ctx.scope.policy
    displays = await ctx.computer.screen.displays() if policy.allow_displays else []
    windows = await _windows(ctx.computer) if policy.allow_windows or policy.allow_processes else []
    shown = [window for window in windows if not is_excluded(window, policy.excluded_applications)]
    ctx.note(displays=len(displays), windows=len(shown))
    return ScreenList(
        permission=Permission(status="granted"),
        displays=[_display(display) for display in displays],
        windows=[_window(window) for window in shown],
    )


async def _windows(computer: Computer) -> list[Window]:
    return await computer.windows.list() if computer.capabilities().has("windows") else []


def _display(display: Display) -> ListedDisplay:
    return ListedDisplay(
        id=display.id,
        name=display.name,
        primary=display.is_primary,
        width=display.pixel_width,
        height=display.pixel_height,
        scale=display.scale,
        bounds=display.bounds,
    )


def _window(window: Window) -> ListedWindow:
    return ListedWindow(
        id=window.id,
        title=window.title,
        process_id=window.pid,
        process_name=window.process,
        app=window.app,
        bounds=window.bounds,
        focused=window.is_focused,
        visible=window.is_visible,
    )
