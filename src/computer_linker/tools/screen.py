"""ScreenshotTool and OCRTool: a screenshot with optional numbered controls, and the text on the screen."""

from typing import Annotated

from pydantic import Field

from computer_linker.model.base import Model
from computer_linker.model.geometry import Rect
from computer_linker.providers.images.encode import ImageFormat
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
        op = "screen.capture" if params.window is None else "screen.capture_window"
        reply = await ctx.call(
            op, params.window or params.display, options={"format": params.format, "marks": params.marks}
        )
        shot = reply.envelope["data"]
        marks = shot.marks or []
        ctx.last_frame = shot.frame_id
        ctx.controls |= {mark.ref: f"{mark.role} {mark.name[:60]!r}" for mark in marks}
        listed = "\n".join(f"{mark.number}. {mark.role} {mark.name!r} ({mark.ref})" for mark in marks)
        return ToolResult(
            title=f"Screenshot {shot.width} x {shot.height}",
            output=f"frame {shot.frame_id}" + (f"\n{listed}" if listed else ""),
            attachments=tuple(Attachment(f"screenshot.{shot.format}", one.data, one.mime) for one in reply.attachments),
            metadata={"frameId": shot.frame_id, "width": shot.width, "height": shot.height, "marks": len(marks)},
        )


class OCRParams(Model):
    display: str = "primary"
    region: Annotated[Rect | None, Field(description="A part of the display; smaller is faster.")] = None
    language: Annotated[str | None, Field(max_length=60)] = None


class OCRTool(Tool[OCRParams]):
    name = "ocr"
    description = "Read the text on the screen, line by line, with its place in the picture."
    Params = OCRParams

    async def execute(self, params: OCRParams, ctx: ToolContext) -> ToolResult:
        await ctx.check_permission(self.name, params.display, "read the text on the screen")
        options = params.to_wire()
        read = (await ctx.call("screen.ocr", options.pop("display"), options=options)).envelope["data"]
        ctx.last_frame = read.frame_id
        output = "\n".join(f"{one.text}  ({one.bounds.center.x:g}, {one.bounds.center.y:g})" for one in read.lines)
        return ToolResult(
            f"{len(read.lines)} lines", output, metadata={"frameId": read.frame_id, "engine": read.engine}
        )
