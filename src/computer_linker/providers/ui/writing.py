"""Entering text: set where the toolkit can, pasted or typed where it cannot, and always read back."""

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import anyio

from computer_linker.computer.facets.accessibility import Accessibility, Element, TreeLimits
from computer_linker.computer.text_entry import Check, EntryMethod, Expected, enter_text, expect, read_back
from computer_linker.errors import Conflict, LinkError
from computer_linker.model.effect import Known
from computer_linker.providers.ui.aim import Aim, Aiming
from computer_linker.providers.ui.roles import is_field, refuse_uncleared, refuse_unwritable

Method = Literal["set_text", "paste", "keys"]
_NEVER_SET = frozenset({"chromium", "gecko"})


@dataclass(frozen=True, slots=True)
class Written:
    """How the text was entered, and the result of reading it back."""

    method: Method
    effect: Known
    has_focus: bool = True
    """False for a field whose text was set without taking the focus: keys would go elsewhere."""


async def write(aiming: Aiming, aim: Aim, text: str, *, clear: bool, prefer: EntryMethod | None = None) -> Written:
    """Enter text in a field, at its caret or replacing its content. The field has the focus afterwards.

    `prefer="keys"` never uses the clipboard.
    """
    one = aim.element
    assert one is not None
    refuse_unwritable(one)
    if one.role in CELLS and "EditableText" not in one.interfaces:
        return Written(*await write_cell(aiming, aim, text, clear=clear))
    is_spinner = one.role == "spin-button" and "Value" in one.interfaces
    is_number = is_spinner and await _shows_value(aiming.computer.accessibility, one)
    written = await _write_field(aiming, aim, text, clear=clear, prefer=prefer)
    if written.effect == "confirmed" and is_spinner:
        return replace(
            written, effect=await _taken_over(aiming.computer.accessibility, aim) if is_number else "partial"
        )
    return written


async def _shows_value(reader: Accessibility, spinner: Element) -> bool:
    """Whether its text is its value. Qt's date fields have a value too, which is not their date and can be set to anything."""
    shown = (await reader.text(spinner.id) or "").strip()
    try:
        return spinner.value is not None and float(shown) == float(spinner.value)
    except ValueError:
        return False


async def _taken_over(reader: Accessibility, aim: Aim) -> Known:
    """Make a spinner take over the number that its field shows; by itself it does that when the focus leaves it.

    `partial` where it took over another, as one that is out of its range.
    """
    assert aim.element is not None
    shown = (await reader.text(aim.element.id) or "").strip()
    try:
        number = float(shown)
        return "confirmed" if await reader.set_value(aim.element.id, number) == number else "partial"
    except (ValueError, LinkError):
        # A number with a unit, or a spinner that is set by its text alone.
        return "partial"


async def _write_field(aiming: Aiming, aim: Aim, text: str, *, clear: bool, prefer: EntryMethod | None) -> Written:
    one = aim.element
    assert one is not None
    reader = aiming.computer.accessibility
    before = await expect(reader, one, text, clear=clear)
    wanted = text if before.wanted is None else before.wanted
    if _can_set(aim, before, clear):
        # Focused first: GTK 3 selects all of a field that takes the focus, and the caret is set with the text.
        has_focus = await _took_focus(aiming, aim)
        if await reader.set_text(one.id, wanted, caret=before.caret):
            return Written("set_text", await read_back(reader, one, before), has_focus)
    written = await _enter(aiming, aim, text, before, clear=clear, prefer=prefer)
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


async def _enter(
    aiming: Aiming, aim: Aim, text: str, before: Expected, *, clear: bool, prefer: EntryMethod | None = None
) -> Written:
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
    entered = await enter_text(aiming.computer, text, prefer=prefer, check=check)
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


# Writing one cell of a table: in the cell's own editor, so that no key reaches the table around it.

CELLS = frozenset({"table-cell"})
_OPENS_S = 12.0
_STILL_S = 8.0
"""Generous: a spreadsheet program on a busy machine takes seconds, and an act that is given up too soon is missed."""
_STEP_S = 0.03
_BESIDE = TreeLimits(max_depth=1, bounds=False, values=False, bulk=False, time_s=2.0)
_PARAGRAPHS = TreeLimits(max_nodes=500, max_depth=1, bounds=False, values=False, bulk=False, time_s=2.0)


async def write_cell(aiming: Aiming, aim: Aim, text: str, *, clear: bool) -> tuple[EntryMethod, Known]:
    """Open the cell's editor, enter the text there, and commit it once the editor holds exactly what it should.

    Raises:
        Conflict: the cell has no editor, or its editor did not take the text; the edit was cancelled.
    """
    cell = aim.element
    assert cell is not None
    computer, reader = aiming.computer, aiming.computer.accessibility
    await aiming.give_focus(aim)
    await computer.keyboard.press(["f2"])
    editor = await _editor(reader, cell)
    if editor is None:
        await computer.keyboard.press(["escape"])
        raise Conflict("The cell opened no editor of its own, so nothing was typed.", role=cell.role)
    held = await _text(reader, editor)
    wanted = text if clear else held + text
    holds = partial(_holds, reader, editor.id.app, wanted)
    await computer.keyboard.press(["ctrl", "a"] if clear else ["ctrl", "end"])
    await _until_selected(reader, editor, is_all=clear)
    method = await _entered(aiming, text, holds, is_full=clear and bool(held))
    if await holds() != "confirmed":
        await computer.keyboard.press(["escape"])
        raise Conflict("The cell's editor did not take the text; the edit was cancelled.", role=cell.role)
    await computer.keyboard.press(["enter"])
    return method, await _committed(reader, cell, wanted)


async def _entered(aiming: Aiming, text: str, holds: Check, *, is_full: bool) -> EntryMethod:
    computer = aiming.computer
    if not text:
        if is_full:
            await computer.keyboard.press(["delete"])
        return "keys"
    # A paste is exact: typed text would be autocompleted from the column, and a line break would leave the cell.
    can_paste = computer.capabilities().has("clipboard")
    if not can_paste and any(mark in text for mark in "\n\t\r"):
        await computer.keyboard.press(["escape"])
        raise Conflict("Line breaks and tabs can only be pasted into a cell, and there is no clipboard here.")
    return (await enter_text(computer, text, prefer="paste" if can_paste else "keys", check=holds)).method


async def _editor(reader: Accessibility, cell: Element) -> Element | None:
    """The text field that opened at the cell and has the focus."""
    deadline = time.monotonic() + _OPENS_S
    while time.monotonic() < deadline:
        one = await reader.focused(cell.id.app)
        if one is not None and one.id != cell.id and is_field(one) and await _lies_in(reader, one, cell):
            return one
        await anyio.sleep(_STEP_S)
    return None


async def _lies_in(reader: Accessibility, editor: Element, cell: Element) -> bool:
    """Whether the editor, or the panel it lies in, is at the cell: LibreOffice misplaces a line that is not to the left."""
    above = (await reader.ancestors(editor.id))[:1]
    places = [one.bounds for one in (editor, *above) if one.bounds is not None]
    return cell.bounds is not None and any(not one.intersection(cell.bounds).is_empty for one in places)


async def _text(reader: Accessibility, editor: Element) -> str:
    """The editor's text; LibreOffice has one element per line."""
    if editor.role != "paragraph" or editor.parent is None:
        return await reader.text(editor.id) or ""
    tree = await reader.tree(editor.parent, _PARAGRAPHS)
    lines = [await reader.text(one.id) or "" for one in tree.elements if one.role == "paragraph"]
    return "\n".join(lines)


async def _holds(reader: Accessibility, app: str, wanted: str) -> Known:
    deadline = time.monotonic() + _STILL_S
    while True:
        try:
            # The focused one is read again: a new line is a new element.
            one = await reader.focused(app)
            if one is not None and is_field(one) and await _text(reader, one) == wanted:
                return "confirmed"
        except LinkError:
            pass
        if time.monotonic() > deadline:
            return "partial"
        await anyio.sleep(_STEP_S)


async def _until_selected(reader: Accessibility, editor: Element, *, is_all: bool) -> None:
    """Wait until the keys have moved the selection or caret: LibreOffice drops a key that follows too soon."""
    length = await reader.text_length(editor.id)
    deadline = time.monotonic() + _OPENS_S
    while length and time.monotonic() < deadline:
        if await reader.caret(editor.id) == ((0, length) if is_all else (length, length)):
            return
        await anyio.sleep(_STEP_S)


async def _committed(reader: Accessibility, cell: Element, wanted: str) -> Known:
    """Whether the cell shows the text. `partial` for a number or formula that the cell formats differently."""
    deadline = time.monotonic() + _STILL_S
    while True:
        if await _shown(reader, cell) == wanted:
            return "confirmed"
        if time.monotonic() > deadline:
            return "partial"
        await anyio.sleep(_STEP_S)


async def _shown(reader: Accessibility, cell: Element) -> str | None:
    """The cell's text, read from its table: LibreOffice creates a new element for a written cell."""
    if cell.parent is None:
        return await reader.text(cell.id)
    tree = await reader.tree(cell.parent, _BESIDE)
    named = [one for one in tree.elements if (one.role, one.name) == (cell.role, cell.name)]
    # The index among the visible cells differs from that in the whole sheet, where names are unique.
    same = named if len(named) == 1 else [one for one in named if one.index == cell.index]
    return await reader.text(same[0].id if same else cell.id)
