"""desktop.hotkey: press a chord of keys."""

from typing import Annotated

from pydantic import Field

from computer_linker.operations.desktop.acting import Acted, ActInput, ActOptions, strike
from computer_linker.operations.desktop.definition import desktop_act
from computer_linker.providers.ui.aim import AimAt
from computer_linker.providers.ui.chords import MAX_KEYS, chord
from computer_linker.registry import Context, Example


class HotkeyInput(ActInput):
    keys: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=30)]],
        Field(min_length=1, max_length=MAX_KEYS, description="Modifiers and one key, such as ctrl, shift, t."),
    ]


@desktop_act(
    "desktop.hotkey",
    did="pressed keys",
    by="keyboard",
    examples=[Example("Save.", {"input": {"keys": ["ctrl", "s"]}}, runs=False)],
)
async def desktop_hotkey(
    ctx: Context, input: HotkeyInput, target: str | AimAt | None = None, options: ActOptions = ActOptions()
) -> Acted:
    """Press a chord in the focused window, or in an element given the focus first.

    Only chords that an application handles are sent; those of the desktop and the system (ctrl+alt+F1, super+L,
    alt+F2, …) are refused.
    """
    return await strike(ctx, chord(input.keys), 1, target, input, options)
