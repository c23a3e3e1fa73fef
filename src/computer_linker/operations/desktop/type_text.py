"""desktop.type_text: enter text in a field."""

from typing import Annotated

from pydantic import Field

from computer_linker.errors import Conflict, PermissionDenied
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
from computer_linker.providers.ui.aim import Aim, AimAt, Aiming
from computer_linker.providers.ui.roles import is_field
from computer_linker.providers.ui.writing import Written, write, write_blindly
from computer_linker.registry import Context, Example
from computer_linker.vault.typed import SecretText, allowed_secret


class TypeInput(ActInput):
    text: Annotated[
        Annotated[str, Field(max_length=100_000)] | SecretText,
        Field(
            description="Any text; it is passed as data, never to a shell. Or a stored secret, for a password field."
        ),
    ]


class TypeOptions(ActOptions):
    clear_before: Annotated[bool, Field(description="Replace what the field holds.")] = False


@desktop_act(
    "desktop.type_text",
    did="typed text[, the secret {secret}]",
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
    `effect` is `confirmed` when the field holds exactly what it should. A password is never read, only its length. A cell
    of a table is written in its own editor and committed. `clearBefore` is refused where no text field is described.
    A secret is typed only into a password field of the program it is for, and never by the clipboard.
    """
    at = aim_at(target, input.target, needed=False)
    aiming = aiming_of(ctx)
    if isinstance(input.text, str):
        ctx.note(characters=len(input.text))
    else:
        ctx.note(secret=input.text.secret)
    async with execution(ctx, options.execution_id) as name:
        aim = await aiming.focused() if at is None else await aiming.take(at)
        if at is None:
            await check_keyboard(ctx, aim, input.route)
        if aim is not None and aim.point is not None:
            aim = await _clicked(aiming, aim, options.clear_before)
        if not isinstance(input.text, str):
            written = await _typed_secret(ctx, aiming, aim, input.text)
        elif aim is None or aim.element is None or (at is None and not is_field(aim.element)):
            written = await write_blindly(aiming, input.text, clear=options.clear_before)
        else:
            written = await write(aiming, aim, input.text, clear=options.clear_before)
        ctx.effect = written.effect if options.verify else "unverifiable"
        if not written.has_focus:
            ctx.warn("The text was set, but the field did not take the keyboard focus: keys would go elsewhere.")
        return acted(ctx, name, written.method, aim)
    raise AssertionError("an ended execution raises")


async def _typed_secret(ctx: Context, aiming: Aiming, aim: Aim | None, asked: SecretText) -> Written:
    """Put a secret into a password field, in the place of what it held.

    Raises:
        PermissionDenied: the scope may not use it, or it is for another program.
        Conflict: no password field was named or has the focus.
    """
    stored = allowed_secret(ctx.services, ctx.scope, asked)
    if aim is None or aim.element is None or aim.app is None or not aim.element.is_password:
        raise Conflict("A secret is typed only into a password field that its application describes.")
    if stored.application not in (aim.app.process or aim.app.name, aim.app.name):
        raise PermissionDenied(f"The secret is for {stored.place}, and the field is of {aim.app.name}.", rule="secrets")
    return await write(aiming, aim, stored.value, clear=True, prefer="keys")


async def _clicked(aiming: Aiming, aim: Aim, clear: bool) -> Aim | None:
    """Click a point and return the element that has the keyboard focus then.

    Raises:
        Conflict: a field is to be cleared, and the focused one lies elsewhere.
    """
    place = aim.point
    assert place is not None
    await aiming.computer.pointer.click(place)
    found = await aiming.focused()
    bounds = None if found is None or found.element is None else found.element.bounds
    if clear and (bounds is None or not bounds.contains(place)):
        raise Conflict("The click at that point focused no text field there, so nothing was cleared or typed.")
    return found
