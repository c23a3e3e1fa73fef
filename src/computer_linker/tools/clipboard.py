"""ClipboardTool: reading and writing the clipboard's text."""

from typing import Annotated, Literal

from pydantic import Field

from computer_linker.errors import InvalidRequest
from computer_linker.model.base import Model
from computer_linker.tools.base import Tool, ToolContext, ToolResult


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
            text = await ctx.computer.clipboard_text()
            return ToolResult("Clipboard", text or "", metadata={"empty": text is None})
        if params.text is None:
            raise InvalidRequest("`text` is needed to write.")
        await ctx.computer.clipboard_set_text(params.text)
        return ToolResult("Copied", f"{len(params.text)} characters")
