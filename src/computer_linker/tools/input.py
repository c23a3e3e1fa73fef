"""MouseTool, KeyboardTool and ClipboardTool: clicks at points of a screenshot, keys at the focus, and copied text."""

from typing import Annotated, Any, Literal

from pydantic import Field

from computer_linker.computer.facets.pointer import Button, Modifier
from computer_linker.errors import InvalidRequest
from computer_linker.model.base import Model
from computer_linker.model.geometry import Coordinate
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
        if params.action == "position":
            now = await ctx.computer.pointer.position()
            return ToolResult("Pointer", f"{now.x:g}, {now.y:g}")
        at = _point(ctx, params.frame_id, params.x, params.y)
        given: dict[str, Any] = {}
        if params.action in ("click", "double_click", "drag"):
            given = {"button": params.button, "modifiers": params.modifiers}
        match params.action:
            case "double_click":
                given["count"] = 2
            case "drag":
                given["to"] = _point(ctx, params.frame_id, params.to_x, params.to_y)
            case "scroll":
                given = {"delta": {"x": params.dx, "y": params.dy}, "modifiers": params.modifiers}
        where = f"{params.action} at {params.x:g}, {params.y:g} of {at['frameId']}"
        await ctx.check_permission(self.name, params.action, where)
        op = "desktop.click" if params.action == "double_click" else f"desktop.{params.action}"
        reply = await ctx.call(op, at, given)
        return ToolResult(f"Mouse {params.action}", f"{where} delivered", metadata={"effect": reply.envelope["effect"]})


def _point(ctx: ToolContext, frame_id: str | None, x: float | None, y: float | None) -> dict[str, Any]:
    frame = frame_id or ctx.last_frame
    if x is None or y is None or frame is None:
        raise InvalidRequest("A point needs x and y, and a screenshot they were seen in.")
    return {"frameId": frame, "x": x, "y": y}


class KeyboardParams(Model):
    action: Literal["type", "press", "hotkey"]
    text: Annotated[str | None, Field(max_length=100_000)] = None
    keys: Annotated[list[str], Field(max_length=6, description="Such as enter, or ctrl and s.")] = []
    count: Annotated[int, Field(ge=1, le=100)] = 1


class KeyboardTool(Tool[KeyboardParams]):
    name = "keyboard"
    description = "Type text, press a key or a chord in the window that has the focus. Any language can be typed."
    Params = KeyboardParams

    async def execute(self, params: KeyboardParams, ctx: ToolContext) -> ToolResult:
        if params.action == "type":
            if params.text is None:
                raise InvalidRequest("`text` is needed to type.")
            await ctx.check_permission(self.name, params.action, f"type {len(params.text)} characters")
            reply = await ctx.call("desktop.type_text", input={"text": params.text})
            method, effect = reply.envelope["data"].method, reply.envelope["effect"]
            summary = f"{len(params.text)} characters by {method}, {effect.replace('_', ' ')}"
            return ToolResult("Typed", summary, metadata={"method": method, "effect": effect})
        if not params.keys or (params.action == "press" and len(params.keys) != 1):
            raise InvalidRequest("`press` takes one key, `hotkey` several.")
        await ctx.check_permission(self.name, params.action, f"press {' + '.join(params.keys)}")
        if params.action == "press":
            reply = await ctx.call("desktop.press", input={"key": params.keys[0], "count": params.count})
        else:
            reply = await ctx.call("desktop.hotkey", input={"keys": params.keys})
        return ToolResult("Pressed", " + ".join(params.keys), metadata={"effect": reply.envelope["effect"]})


class ClipboardParams(Model):
    action: Literal["read", "write"]
    text: Annotated[str | None, Field(max_length=1_000_000)] = None


class ClipboardTool(Tool[ClipboardParams]):
    name = "clipboard"
    description = "Read or replace the text on the clipboard."
    Params = ClipboardParams

    async def execute(self, params: ClipboardParams, ctx: ToolContext) -> ToolResult:
        await ctx.check_permission(self.name, params.action, f"{params.action} the clipboard")
        if params.action == "read":
            text = (await ctx.call("clipboard.read")).envelope["data"].text
            return ToolResult("Clipboard", text or "", metadata={"empty": text is None})
        if params.text is None:
            raise InvalidRequest("`text` is needed to write.")
        reply = await ctx.call("clipboard.write", input={"text": params.text})
        return ToolResult("Copied", f"{len(params.text)} characters", metadata={"effect": reply.envelope["effect"]})
