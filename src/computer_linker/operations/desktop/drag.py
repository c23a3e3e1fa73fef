"""desktop.drag: press at one place and release at another."""

from typing import Annotated

from pydantic import Field

from computer_linker.computer.facets.pointer import Button, Modifier
from computer_linker.operations.desktop.acting import Acted, ActInput, ActOptions, by_aim
from computer_linker.operations.desktop.definition import desktop_act
from computer_linker.providers.ui.aim import Aim, AimAt, Aiming
from computer_linker.providers.ui.pointing import drag
from computer_linker.providers.ui.witness import Witness
from computer_linker.registry import Context, Example


class DragInput(ActInput):
    to: Annotated[AimAt, Field(description="Where to release.")]
    button: Button = "left"
    modifiers: Annotated[list[Modifier], Field(max_length=4, description="Keys held meanwhile.")] = []


@desktop_act(
    "desktop.drag",
    did="dragged",
    by="pointer",
    examples=[
        Example(
            "Drag one element onto another.", {"target": "e12.k3f9", "input": {"to": {"ref": "e14.k3f9"}}}, runs=False
        )
    ],
)
async def desktop_drag(
    ctx: Context, input: DragInput, target: str | AimAt | None = None, options: ActOptions = ActOptions()
) -> Acted:
    """Drag from an element or point to another, with a button held, through the points in between."""

    async def pull(aiming: Aiming, start: Aim, watch: Witness) -> str:
        return await drag(aiming, start, await aiming.take(input.to), input.button, input.modifiers, watch)

    return await by_aim(ctx, target, input, options, pull)
