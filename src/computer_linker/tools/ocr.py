"""OCRTool: the text that shows on the screen."""

from typing import Annotated

from pydantic import Field

from computer_linker.model.base import Model
from computer_linker.model.geometry import Rect
from computer_linker.providers.ocr.engines import Ocr
from computer_linker.providers.shots import cut, find_display, shoot
from computer_linker.tools.base import Tool, ToolContext, ToolResult


class OCRParams(Model):
    display: str = "primary"
    region: Annotated[Rect | None, Field(description="A part of the display; smaller is faster.")] = None
    language: Annotated[str | None, Field(max_length=60)] = None


class OCRTool(Tool[OCRParams]):
    name = "ocr"
    description = "Read the text on the screen, line by line, with its place in the picture."
    Params = OCRParams

    def __init__(self) -> None:
        self._ocr = Ocr()

    async def execute(self, params: OCRParams, ctx: ToolContext) -> ToolResult:
        await ctx.check_permission(self.name, params.display, "read the text on the screen")
        display = find_display(await ctx.computer.screen.displays(), params.display)
        shot = await shoot(ctx.computer, display.bounds)
        pixmap = cut(shot.pixmap, params.region)
        lines = await self._ocr.lines(pixmap, params.language)
        frame = ctx.frames.keep(ctx.session_id, pixmap.map, shot.windows, shot.displays)
        ctx.last_frame = frame.id
        output = "\n".join(f"{line.text}  ({line.bounds.center.x:g}, {line.bounds.center.y:g})" for line in lines)
        return ToolResult(f"{len(lines)} lines", output, metadata={"frameId": frame.id, "engine": self._ocr.engine})
