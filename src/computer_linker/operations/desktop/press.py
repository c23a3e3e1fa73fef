"""desktop.press: press one key."""

from typing import Annotated

from pydantic import Field

from computer_linker.operations.desktop.acting import Acted, ActInput, ActOptions, strike
from computer_linker.operations.desktop.definition import desktop_act
from computer_linker.providers.ui.aim import AimAt
from computer_linker.providers.ui.chords import MAX_STROKES, chord
from computer_linker.registry import Context, Example


class PressInput(ActInput):
    key: Annotated[str, Field(min_length=1, max_length=30, description="A key name such as enter, tab, f5, a.")]
    count: Annotated[int, Field(ge=1, le=MAX_STROKES, description="How often.")] = 1


@desktop_act(
    "desktop.press",
    did="pressed a key",
    by="keyboard",
    examples=[Example("Press Enter.", {"input": {"key": "enter"}}, runs=False)],
)
async def desktop_press(
    ctx: Context, input: PressInput, target: str | AimAt | None = None, options: ActOptions = ActOptions()
) -> Acted:
    """Press one key in the focused window, or in an element given the focus first."""
    return await strike(ctx, chord([input.key]), input.count, target, input, options)
