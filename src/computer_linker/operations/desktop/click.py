"""desktop.click: press a control, or click a point that was seen in a capture."""

from typing import Annotated

from pydantic import Field

from computer_linker.computer.facets.pointer import Button, Modifier
from computer_linker.operations.desktop.acting import Acted, ActInput, ActOptions, by_aim
from computer_linker.operations.desktop.definition import desktop_act
from computer_linker.providers.ui.aim import AimAt
from computer_linker.providers.ui.pointing import Click, click
from computer_linker.registry import Context, Example


class ClickInput(ActInput):
    button: Button = "left"
    count: Annotated[int, Field(ge=1, le=3, description="2 for a double click.")] = 1
    modifiers: Annotated[list[Modifier], Field(max_length=4, description="Keys held meanwhile.")] = []


@desktop_act(
    "desktop.click",
    did="clicked[ a {role}]",
    by="pointer",
    examples=[
        Example("Press a control by its reference.", {"target": "e12.k3f9"}, runs=False),
        Example(
            "Press a control by role and name.",
            {"target": {"selector": {"role": "button", "name": "Send"}, "route": {"app": "Mail"}}},
            runs=False,
        ),
        Example(
            "Double click a point of a capture.",
            {"target": {"frameId": "frame_1", "x": 120, "y": 48}, "input": {"count": 2}},
            runs=False,
        ),
    ],
)
async def desktop_click(
    ctx: Context,
    target: str | AimAt | None = None,
    input: ClickInput = ClickInput(),
    options: ActOptions = ActOptions(),
) -> Acted:
    """Click an element by reference or selector, or a point in a captured frame.

    A reference that no longer stands for the same element, a selector that fits several, and a frame whose window moved
    are refused. The result says by which method, and `effect` what reading back showed.
    """
    how = Click(input.button, input.count, input.modifiers)
    return await by_aim(ctx, target, input, options, lambda aiming, aim, watch: click(aiming, aim, how, watch))
