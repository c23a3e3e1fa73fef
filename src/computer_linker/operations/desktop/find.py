"""desktop.find: the elements a selector means."""

from typing import Annotated

from pydantic import Field

from computer_linker.providers.refs import References
from computer_linker.providers.ui.outline import Node
from computer_linker.providers.ui.route import Route
from computer_linker.providers.ui.view import Selector, read_view, select
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes


class FindInput(Model):
    selector: Selector


class Found(Model):
    elements: Annotated[list[Node], Field(description="Those that show first, an exact name before a partial one.")]
    matched: Annotated[int, Field(description="How many fit, also beyond the limit.")]
    app: str
    window: str
    truncated: Annotated[bool, Field(description="True when the tree was too large to search whole.")]


@operation(
    "desktop.find",
    did="looked for a control",
    needs={Capability.DESKTOP_OBSERVE},
    effect=Effect.OBSERVE,
    text=shapes.ELEMENTS,
    on="computer",
    deadline_s=20,
    facets=("accessibility",),
    examples=[
        Example(
            "Find a button in the focused window.",
            {"input": {"selector": {"role": "button", "nameContains": "send"}}},
            runs=False,
        )
    ],
)
async def desktop_find(ctx: Context, input: FindInput, target: str | Route | None = None) -> Found:
    """Find elements by role, name, value and state in an application, a window or the focused window."""
    view = await read_view(ctx.computer, ctx.scope, ctx.use(References), target)
    found = select(input.selector, view.lines)
    ctx.note(matched=len(found), searched=len(view.lines))
    return Found(
        elements=view.nodes(found[: input.selector.limit]),
        matched=len(found),
        app=view.place.app.name,
        window=view.place.title,
        truncated=bool(view.cut_by),
    )
