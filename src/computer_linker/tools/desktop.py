"""AppTool and UITool: applications, windows and the controls of the focused window."""

from typing import Annotated, Any, Literal

from pydantic import Field

from computer_linker.errors import InvalidRequest
from computer_linker.model.base import Model
from computer_linker.model.geometry import Rect
from computer_linker.providers.images import ImageFormat
from computer_linker.tools.base import Attachment, Tool, ToolContext, ToolResult


class AppParams(Model):
    action: Literal["list", "windows", "open", "close", "focus", "focus_window", "close_window"]
    app: Annotated[str | None, Field(max_length=200)] = None
    window: Annotated[str | None, Field(max_length=64)] = None
    arguments: Annotated[list[str], Field(max_length=20, description="Files or addresses to open.")] = []


class AppTool(Tool[AppParams]):
    name = "app"
    description = "List, open, close or focus applications and windows."
    Params = AppParams

    async def execute(self, params: AppParams, ctx: ToolContext) -> ToolResult:
        await ctx.check_permission(
            self.name, params.action, f"{params.action} {params.app or params.window or ''}".strip()
        )
        match params.action:
            case "list":
                apps = await _data(ctx, "app.list")
                return ToolResult(
                    f"{len(apps.apps)} applications", "\n".join(f"{one.id}: {one.name}" for one in apps.apps)
                )
            case "windows":
                found = (await _data(ctx, "window.list")).windows
                return ToolResult(f"{len(found)} windows", "\n".join(f"{one.id}: {one.title}" for one in found))
            case "open":
                given = {"arguments": params.arguments}
                opened = (await _data(ctx, "app.open", _needed(params.app, "app"), given)).app
                return ToolResult(
                    f"Opened {opened.name}", " ".join(opened.windows), metadata={"windows": opened.windows}
                )
            case "close":
                closed = (await _data(ctx, "app.close", _needed(params.app, "app"))).closed
                return ToolResult("Closed" if closed else "Still open", "" if closed else "It may be asking to save.")
            case "focus":
                return ToolResult(f"Focused {(await _data(ctx, 'app.focus', _needed(params.app, 'app'))).app.name}")
            case "focus_window":
                focused = await _data(ctx, "window.focus", _needed(params.window, "window"))
                return ToolResult(f"Focused {focused.window.title}")
            case "close_window":
                gone = (await _data(ctx, "window.close", _needed(params.window, "window"))).closed
                return ToolResult("Closed" if gone else "Still open")


async def _data(ctx: ToolContext, op: str, target: str | None = None, input: dict[str, Any] | None = None) -> Any:
    return (await ctx.call(op, target, input)).envelope["data"]


def _needed(value: str | None, name: str) -> str:
    if not value:
        raise InvalidRequest(f"`{name}` is needed.")
    return value


_MAX_LINES = 300


class UIParams(Model):
    action: Literal["tree", "press", "set_text"]
    app: Annotated[
        str | None, Field(max_length=200, description="An application's name; the focused window if left out.")
    ] = None
    ref: Annotated[str | None, Field(max_length=40, description="A control's reference from `tree`.")] = None
    text: Annotated[str | None, Field(max_length=100_000)] = None


class UITool(Tool[UIParams]):
    name = "ui"
    description = "List the controls of a window with references, press one, or set its text."
    Params = UIParams

    async def execute(self, params: UIParams, ctx: ToolContext) -> ToolResult:
        if params.action == "tree":
            return await self._tree(params, ctx)
        if params.ref is None:
            raise InvalidRequest("`ref` is needed; `tree` gives them.")
        what = ctx.controls.get(params.ref, params.ref)
        await ctx.check_permission(self.name, params.action, f"{params.action} {what}")
        if params.action == "press":
            reply = await ctx.call("desktop.click", params.ref)
            method = reply.envelope["data"].method
            effect = reply.envelope["effect"]
            return ToolResult(f"Pressed {what}", method, metadata={"method": method, "effect": effect})
        if params.text is None:
            raise InvalidRequest("`text` is needed to set it.")
        reply = await ctx.call("desktop.type_text", params.ref, {"text": params.text}, {"clearBefore": True})
        method, effect = reply.envelope["data"].method, reply.envelope["effect"]
        if effect == "suspected_noop":
            return ToolResult(f"Set text of {what}", error="The application did not take the text; type it instead.")
        metadata = {"method": method, "effect": effect}
        return ToolResult(f"Set text of {what}", f"{len(params.text)} characters", metadata=metadata)

    async def _tree(self, params: UIParams, ctx: ToolContext) -> ToolResult:
        await ctx.check_permission(self.name, params.action, "read the controls of a window")
        tree = (await ctx.call("ui.tree", params.app or "focused", options={"maxNodes": _MAX_LINES})).envelope["data"]
        ctx.controls = {node["ref"]: f"{node['role']} {node['name'][:60]!r}" for node in tree.nodes}
        lines = [f"{node['ref']} {node['role']} {node['name']!r}" for node in tree.nodes]
        return ToolResult(f"{len(lines)} controls", "\n".join(lines), metadata={"truncated": tree.truncated})


# ScreenshotTool and OCRTool: a screenshot with optional numbered controls, and the text on the screen.


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
