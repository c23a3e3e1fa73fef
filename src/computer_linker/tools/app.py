"""AppTool: opening, closing, focusing and listing applications and windows."""

from typing import Annotated, Literal

from pydantic import Field

from computer_linker.errors import InvalidRequest
from computer_linker.model.base import Model
from computer_linker.tools.base import Tool, ToolContext, ToolResult


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
        computer = ctx.computer
        await ctx.check_permission(
            self.name, params.action, f"{params.action} {params.app or params.window or ''}".strip()
        )
        match params.action:
            case "list":
                apps = await computer.apps.list()
                return ToolResult(f"{len(apps)} applications", "\n".join(f"{app.id}: {app.name}" for app in apps))
            case "windows":
                windows = await computer.windows.list()
                return ToolResult(f"{len(windows)} windows", "\n".join(f"{one.id}: {one.title}" for one in windows))
            case "open":
                opened = await computer.apps.open(_needed(params.app, "app"), params.arguments)
                return ToolResult(
                    f"Opened {opened.name}", " ".join(opened.windows), metadata={"windows": opened.windows}
                )
            case "close":
                closed = await computer.apps.close(_needed(params.app, "app"))
                return ToolResult("Closed" if closed else "Still open", "" if closed else "It may be asking to save.")
            case "focus":
                return ToolResult(f"Focused {(await computer.apps.focus(_needed(params.app, 'app'))).name}")
            case "focus_window":
                return ToolResult(f"Focused {(await computer.windows.focus(_needed(params.window, 'window'))).title}")
            case "close_window":
                gone = await computer.windows.close(_needed(params.window, "window"))
                return ToolResult("Closed" if gone else "Still open")


def _needed(value: str | None, name: str) -> str:
    if not value:
        raise InvalidRequest(f"`{name}` is needed.")
    return value
