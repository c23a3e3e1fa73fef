"""UITool: the controls of the focused window, and pressing one of them."""

from typing import Annotated, Literal

from pydantic import Field

from computer_linker.computer.facets.accessibility import Element, TreeLimits
from computer_linker.errors import ElementNotFound, InvalidRequest, LinkError
from computer_linker.model.base import Model
from computer_linker.providers.ui.look import look
from computer_linker.providers.ui.route import Route
from computer_linker.tools.base import Tool, ToolContext, ToolResult

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
        reference, element = await ctx.references.resolve(ctx.scope.id, params.ref, ctx.computer)
        what = f"{element.role} {element.name[:60]!r}"
        await ctx.check_permission(self.name, params.action, f"{params.action} {what}")
        if params.action == "press":
            method = await _press(ctx, reference.app_name, element)
            return ToolResult(f"Pressed {what}", method, metadata={"method": method})
        if params.text is None:
            raise InvalidRequest("`text` is needed to set it.")
        done = await ctx.computer.accessibility.set_text(element.id, params.text)
        held = await ctx.computer.accessibility.text(element.id)
        if not done or (held is not None and held.rstrip("\n") != params.text.rstrip("\n")):
            return ToolResult(f"Set text of {what}", error="The application did not take the text; type it instead.")
        return ToolResult(f"Set text of {what}", f"{len(params.text)} characters", metadata={"method": "set_text"})

    async def _tree(self, params: UIParams, ctx: ToolContext) -> ToolResult:
        await ctx.check_permission(self.name, params.action, "read the controls of a window")
        route = Route(app=params.app) if params.app else None
        view = await look(
            ctx.computer, ctx.scope, ctx.references, route, limits=TreeLimits(), max_lines=_MAX_LINES, hidden=False
        )
        lines = [f"{node['ref']} {node['role']} {node['name']!r}" for node in view.nodes()]
        return ToolResult(f"{len(lines)} controls", "\n".join(lines), metadata={"truncated": bool(view.cut_by)})


async def _press(ctx: ToolContext, app_name: str, element: Element) -> str:
    """By the application's own action where that is safe, else by a click on its middle."""
    computer = ctx.computer
    applications = await computer.accessibility.applications()
    app = next((one for one in applications if one.id == element.id.app), None)
    if app is not None and not app.is_gtk3 and "Action" in element.interfaces:
        try:
            if await computer.accessibility.perform(element.id):
                return "action"
        except LinkError:
            # Fall through to a click, which every application understands.
            pass
    if element.bounds is None or element.bounds.is_empty:
        raise ElementNotFound("The control shows nowhere, so it cannot be clicked.", app=app_name)
    await computer.click(element.bounds.center)
    return "pointer"
