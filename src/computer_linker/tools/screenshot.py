"""ScreenshotTool: a picture of the desktop or a window, with numbered controls where wanted."""

from typing import Annotated

from anyio import to_thread
from pydantic import Field

from computer_linker.model.base import Model
from computer_linker.model.geometry import Window
from computer_linker.providers.images.encode import ImageFormat, encode
from computer_linker.providers.marks import Marked, choose, draw
from computer_linker.providers.shots import Shot, find_display, shoot
from computer_linker.providers.ui.look import look
from computer_linker.providers.ui.route import Route
from computer_linker.providers.window_choice import window_by_id
from computer_linker.tools.base import Attachment, Tool, ToolContext, ToolResult


class ScreenshotParams(Model):
    display: Annotated[str, Field(description="A display id, or `primary`.")] = "primary"
    window: Annotated[str | None, Field(description="A window id, for that window alone.")] = None
    marks: Annotated[bool, Field(description="Number the controls.")] = False
    format: ImageFormat = "png"


class ScreenshotTool(Tool[ScreenshotParams]):
    name = "screenshot"
    description = "Take a picture of the screen. Points in it can be used with the mouse tool and the frame it names."
    Params = ScreenshotParams

    async def execute(self, params: ScreenshotParams, ctx: ToolContext) -> ToolResult:
        await ctx.check_permission(self.name, params.window or params.display, "take a picture of the screen")
        computer, window = ctx.computer, None
        if params.window is not None:
            window = window_by_id(await computer.windows.list(), params.window, ())
            shot = await shoot(computer, window=window)
        else:
            display = find_display(await computer.screen.displays(), params.display)
            shot = await shoot(computer, display.bounds)
        pixmap, marks = shot.pixmap, list[Marked]()
        if params.marks:
            marks = await _marks(ctx, shot, window or await computer.windows.focused())
            pixmap = await to_thread.run_sync(draw, pixmap, marks)
        image = await to_thread.run_sync(encode, pixmap, params.format)
        frame = ctx.frames.keep(ctx.session_id, image.map, shot.windows, shot.displays, shot.window_id)
        ctx.last_frame = frame.id
        listed = "\n".join(f"{mark.number}. {mark.role} {mark.name!r} ({mark.ref})" for mark in marks)
        return ToolResult(
            title=f"Screenshot {image.map.width} x {image.map.height}",
            output=f"frame {frame.id}" + (f"\n{listed}" if listed else ""),
            attachments=(Attachment(f"screenshot.{image.format}", image.data, image.mime),),
            metadata={"frameId": frame.id, "width": image.map.width, "height": image.map.height, "marks": len(marks)},
        )


async def _marks(ctx: ToolContext, shot: Shot, window: Window | None) -> list[Marked]:
    if window is None or window.pid is None or not ctx.computer.capabilities().has("accessibility"):
        return []
    view = await look(ctx.computer, ctx.scope, ctx.references, Route(pid=window.pid))
    stack = [window] if shot.window_id is not None else shot.windows
    return choose(view.nodes(), window, stack, shot.pixmap.area)
