"""Entering text: set where the toolkit can, pasted or typed where it cannot, and always read back."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from computer_linker.computer.text_entry import Expected, enter_text, expect, read_back
from computer_linker.errors import Conflict, LinkError
from computer_linker.model.effect import Known
from computer_linker.providers.ui.aim import Aim, Aiming
from computer_linker.providers.ui.cells import CELLS, write_cell
from computer_linker.providers.ui.roles import refuse_uncleared, refuse_unwritable

Method = Literal["set_text", "paste", "keys"]
_NEVER_SET = frozenset({"chromium", "gecko"})


@dataclass(frozen=True, slots=True)
class Written:
    """How the text was entered, and the result of reading it back."""

    method: Method
    effect: Known
    has_focus: bool = True
    """False for a field whose text was set without taking the focus: keys would go elsewhere."""


async def write(aiming: Aiming, aim: Aim, text: str, *, clear: bool) -> Written:
    """Enter text in a field, at its caret or replacing its content. The field has the focus afterwards."""
    one = aim.element
    assert one is not None
    refuse_unwritable(one)
    if one.role in CELLS and "EditableText" not in one.interfaces:
        return Written(*await write_cell(aiming, aim, text, clear=clear))
    reader = aiming.computer.accessibility
    before = await expect(reader, one, text, clear=clear)
    wanted = text if before.wanted is None else before.wanted
    if _can_set(aim, before, clear):
        # Focused first: GTK 3 selects all of a field that takes the focus, and the caret is set with the text.
        has_focus = await _took_focus(aiming, aim)
        if await reader.set_text(one.id, wanted, caret=before.caret):
            return Written("set_text", await read_back(reader, one, before), has_focus)
    written = await _enter(aiming, aim, text, before, clear=clear)
    if written.effect == "suspected_noop" and written.method == "paste":
        # An application that has just started may miss its first paste. The field is as it was, so once more is safe.
        written = await _enter(aiming, aim, text, before, clear=clear)
    return written


async def _took_focus(aiming: Aiming, aim: Aim) -> bool:
    try:
        await aiming.give_focus(aim)
    except LinkError:
        # The text can still be set.
        return False
    return True


async def _enter(aiming: Aiming, aim: Aim, text: str, before: Expected, *, clear: bool) -> Written:
    one = aim.element
    assert one is not None
    await aiming.give_focus(aim)
    if clear and (before.length is None or before.length > 0):
        await refuse_uncleared(aiming.computer.accessibility, one)
        await aiming.computer.keyboard.press(["ctrl", "a"])
        if not text:
            await aiming.computer.keyboard.press(["delete"])
    check = partial(read_back, aiming.computer.accessibility, one, before)
    if not text:
        return Written("keys", await check())
    entered = await enter_text(aiming.computer, text, check=check)
    return Written(entered.method, entered.effect)


async def write_blindly(aiming: Aiming, text: str, *, clear: bool) -> Written:
    """Enter text at the focus, when no application describes the focused element.

    Raises:
        Conflict: `clear` was requested; select-all keys could clear anything there.
    """
    if clear:
        raise Conflict(
            "No application describes a text field where the keyboard is, so clearBefore is refused and nothing was "
            "typed. Clear it with desktop.hotkey and look, then type without clearBefore."
        )
    entered = await enter_text(aiming.computer, text)
    return Written(entered.method, entered.effect)


def _can_set(aim: Aim, before: Expected, clear: bool) -> bool:
    one = aim.element
    if one is None or aim.app is None or "EditableText" not in one.interfaces or aim.app.toolkit.lower() in _NEVER_SET:
        return False
    # What cannot be read, such as a password, can be replaced or begun but not appended to.
    return before.wanted is not None or clear or before.length == 0
