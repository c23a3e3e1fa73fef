"""KeyboardTool: text, keys and chords where the focus is."""

from typing import Annotated, Literal

from pydantic import Field

from computer_linker.errors import InvalidRequest
from computer_linker.model.base import Model
from computer_linker.tools.base import Tool, ToolContext, ToolResult


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
            entered = await ctx.computer.type_text(params.text)
            said = f"{len(params.text)} characters by {entered.method}, {entered.effect.replace('_', ' ')}"
            return ToolResult("Typed", said, metadata={"method": entered.method, "effect": entered.effect})
        if not params.keys or (params.action == "press" and len(params.keys) != 1):
            raise InvalidRequest("`press` takes one key, `hotkey` several.")
        await ctx.check_permission(self.name, params.action, f"press {' + '.join(params.keys)}")
        await ctx.computer.keyboard.press(params.keys, count=params.count)
        return ToolResult("Pressed", " + ".join(params.keys))
