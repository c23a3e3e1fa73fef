"""desktop.scroll: turn the wheel over an element or point."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from computer_linker.computer.facets.pointer import Modifier
from computer_linker.operations.desktop.acting import Acted, ActInput, ActOptions, by_aim
from computer_linker.operations.desktop.definition import desktop_act
from computer_linker.providers.ui.aim import Aim, AimAt, Aiming
from computer_linker.providers.ui.pointing import scroll
from computer_linker.providers.ui.witness import Witness
from computer_linker.registry import Context, Example, Model

Notches = Annotated[int, Field(ge=-100, le=100)]


class Delta(Model):
    x: Annotated[Notches, Field(description="Wheel notches to the right.")] = 0
    y: Annotated[Notches, Field(description="Wheel notches down.")] = 0

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if self.x == 0 and self.y == 0:
            raise ValueError("say how far, in x or y")
        return self


class ScrollInput(ActInput):
    delta: Delta
    modifiers: Annotated[list[Modifier], Field(max_length=4, description="Keys held meanwhile.")] = []


@desktop_act(
    "desktop.scroll",
    did="scrolled",
    by="pointer",
    examples=[Example("Scroll a list down.", {"target": "e12.k3f9", "input": {"delta": {"y": 5}}}, runs=False)],
)
async def desktop_scroll(
    ctx: Context, input: ScrollInput, target: str | AimAt | None = None, options: ActOptions = ActOptions()
) -> Acted:
    """Turn the wheel over an element or a point in a captured frame; whole notches, positive is right and down."""
    delta, held = input.delta, input.modifiers

    async def turn(aiming: Aiming, aim: Aim, watch: Witness) -> str:
        return await scroll(aiming, aim, delta.x, delta.y, held, watch)

    return await by_aim(ctx, target, input, options, turn)
