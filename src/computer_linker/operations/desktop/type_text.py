"""desktop.type_text: enter text in a field."""

from typing import Annotated

from pydantic import Field

from computer_linker.operations.desktop.acting import (
    Acted,
    ActInput,
    ActOptions,
    acted,
    aim_at,
    aiming_of,
    check_keyboard,
    execution,
)
from computer_linker.operations.desktop.definition import desktop_act
from computer_linker.providers.ui.aim import AimAt
from computer_linker.providers.ui.writing import write, write_blindly
from computer_linker.registry import Context, Example


class TypeInput(ActInput):
    text: Annotated[str, Field(max_length=100_000, description="Any text; it is passed as data, never to a shell.")]


class TypeOptions(ActOptions):
    clear_before: Annotated[bool, Field(description="Replace what the field holds.")] = False


@desktop_act(
    "desktop.type_text",
    by="keyboard",
    deadline_s=60,
    aliases=("desktop.typeText",),
    examples=[
        Example(
            "Fill a field.",
            {"target": "e12.k3f9", "input": {"text": "Zoë 你好"}, "options": {"clearBefore": True}},
            runs=False,
        )
    ],
)
async def desktop_type_text(
    ctx: Context, input: TypeInput, target: str | AimAt | None = None, options: TypeOptions = TypeOptions()
) -> Acted:
    """Enter text in an element, or where the keyboard focus is.

    The text is set where the application allows it, else pasted (the clipboard is put back) or typed, and read back:
    `effect` is `confirmed` when the field holds exactly what it should. A password is never read, only its length.
    """
    at = aim_at(target, input.target, needed=False)
    aiming = aiming_of(ctx)
    ctx.note(characters=len(input.text))
    async with execution(ctx, options.execution_id) as name:
        aim = await aiming.focused() if at is None else await aiming.take(at)
        if at is None:
            await check_keyboard(ctx, aim, input.route)
        if aim is not None and aim.point is not None:
            await ctx.computer.pointer.click(aim.point)
            aim = await aiming.focused()
        if aim is None or aim.element is None or (at is None and not _is_field(aim)):
            written = await write_blindly(aiming, input.text)
        else:
            written = await write(aiming, aim, input.text, clear=options.clear_before)
        ctx.effect = written.effect if options.verify else "unverifiable"
        return acted(ctx, name, written.method, aim)
    raise AssertionError("an ended execution raises")


def _is_field(aim: object) -> bool:
    element = getattr(aim, "element", None)
    return element is not None and ("EditableText" in element.interfaces or "editable" in element.states)
