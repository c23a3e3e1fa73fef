"""MouseTool: clicks, drags and scrolls at points of a screenshot."""

from typing import Annotated, Literal

from pydantic import Field

from computer_linker.computer.facets.pointer import Button, Modifier
from computer_linker.errors import InvalidRequest
from computer_linker.model.base import Model
from computer_linker.model.geometry import Coordinate, Point
from computer_linker.tools.base import Tool, ToolContext, ToolResult

Notches = Annotated[int, Field(ge=-50, le=50)]


class MouseParams(Model):
    action: Literal["click", "double_click", "move", "drag", "scroll", "position"]
    x: Annotated[Coordinate | None, Field(description="In the screenshot's pixels.")] = None
    y: Coordinate | None = None
    to_x: Coordinate | None = None
    to_y: Coordinate | None = None
    frame_id: Annotated[
        str | None, Field(description="The screenshot the point was seen in; the last one if left out.")
    ] = None
    button: Button = "left"
    modifiers: list[Modifier] = []
    dx: Notches = 0
    dy: Annotated[Notches, Field(description="Positive is down.")] = 0


class MouseTool(Tool[MouseParams]):
    name = "mouse"
    description = "Move, click, drag or scroll at a point of a screenshot. A point whose window moved since is refused."
    Params = MouseParams

    async def execute(self, params: MouseParams, ctx: ToolContext) -> ToolResult:
        pointer = ctx.computer.pointer
        if params.action == "position":
            at = await pointer.position()
            return ToolResult("Pointer", f"{at.x:g}, {at.y:g}")
        place = await _place(ctx, params.frame_id, params.x, params.y)
        await ctx.check_permission(self.name, params.action, f"{params.action} at {place.x:g}, {place.y:g}")
        match params.action:
            case "click" | "double_click":
                count = 2 if params.action == "double_click" else 1
                await pointer.click(place, button=params.button, count=count, modifiers=params.modifiers)
            case "move":
                await pointer.move(place)
            case "drag":
                end = await _place(ctx, params.frame_id, params.to_x, params.to_y)
                await pointer.drag([place, end], button=params.button, modifiers=params.modifiers)
            case "scroll":
                await pointer.scroll(place, dx=params.dx, dy=params.dy, modifiers=params.modifiers)
        return ToolResult(f"Mouse {params.action}", f"{params.action} delivered at {place.x:g}, {place.y:g}")


async def _place(ctx: ToolContext, frame_id: str | None, x: float | None, y: float | None) -> Point:
    frame = frame_id or ctx.last_frame
    if x is None or y is None or frame is None:
        raise InvalidRequest("A point needs x and y, and a screenshot they were seen in.")
    return await ctx.frames.locate(frame, Point(x=x, y=y), scope=ctx.session_id, computer=ctx.computer)
