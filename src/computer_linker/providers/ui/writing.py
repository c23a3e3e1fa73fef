"""Entering text: set where the toolkit can, pasted or typed where it cannot, and always read back."""

import time
from dataclasses import dataclass
from typing import Literal

import anyio

from computer_linker.computer.facets.accessibility import Element
from computer_linker.computer.text_entry import enter_text
from computer_linker.errors import Conflict
from computer_linker.model.effect import Known
from computer_linker.providers.ui.aim import Aim, Aiming
from computer_linker.providers.ui.roles import TEXTS

Method = Literal["set_text", "paste", "keys"]
_READ_BACK_S = 2.0
_STEP_S = 0.01
_MAX_READ = 1_000_000
_NEVER_SET = frozenset({"chromium", "gecko"})


@dataclass(frozen=True, slots=True)
class Written:
    """How the text was entered and what reading it back showed."""

    method: Method
    effect: Known


@dataclass(frozen=True, slots=True)
class _Before:
    """A field before the text is entered, and what it must hold after."""

    text: str | None
    length: int | None
    wanted: str | None
    wanted_length: int | None
    caret: int


async def write(aiming: Aiming, aim: Aim, text: str, *, clear: bool) -> Written:
    """Enter text in a field, at its caret or instead of all it holds."""
    one = aim.element
    assert one is not None
    refuse_unwritable(one)
    before = await _before(aiming, one, text, clear)
    wanted = text if before.wanted is None else before.wanted
    if _can_set(aim, before, clear) and await aiming.computer.accessibility.set_text(
        one.id, wanted, caret=before.caret
    ):
        return Written("set_text", await _read_back(aiming, one, before))
    written = await _enter(aiming, aim, text, before, clear=clear)
    if written.effect == "suspected_noop" and written.method == "paste":
        # An application that has just started may miss its first paste. The field is as it was, so once more is safe.
        written = await _enter(aiming, aim, text, before, clear=clear)
    return written


async def _enter(aiming: Aiming, aim: Aim, text: str, before: _Before, *, clear: bool) -> Written:
    one = aim.element
    assert one is not None
    await aiming.give_focus(aim)
    if clear and (before.length is None or before.length > 0):
        await aiming.computer.keyboard.press(["ctrl", "a"])
        if not text:
            await aiming.computer.keyboard.press(["delete"])
    if not text:
        return Written("keys", await _read_back(aiming, one, before))
    known: list[Known] = []

    async def settled() -> None:
        known.append(await _read_back(aiming, one, before))

    method = await enter_text(aiming.computer, text, settled=settled)
    return Written(method, known[0] if known else await _read_back(aiming, one, before))


async def write_blindly(aiming: Aiming, text: str) -> Written:
    """Enter text where the focus is, when no application tells what that is."""
    return Written(await enter_text(aiming.computer, text), "unverifiable")


def refuse_unwritable(one: Element) -> None:
    """Raise Conflict for an element that takes no text."""
    if (
        not ({"EditableText"} & one.interfaces or "editable" in one.states or one.role in TEXTS)
        or "read-only" in one.states
    ):
        raise Conflict("The element takes no text.", role=one.role)
    if not {"enabled", "sensitive"}.intersection(one.states):
        raise Conflict("The element is disabled.", role=one.role)


def _can_set(aim: Aim, before: _Before, clear: bool) -> bool:
    one = aim.element
    if one is None or aim.app is None or "EditableText" not in one.interfaces or aim.app.toolkit.lower() in _NEVER_SET:
        return False
    # What cannot be read, a password above all, can be replaced or begun but not added to.
    return before.wanted is not None or clear or before.length == 0


async def _before(aiming: Aiming, one: Element, text: str, clear: bool) -> _Before:
    reader = aiming.computer.accessibility
    length = await reader.text_length(one.id)
    if one.is_password:
        wanted_length = None if length is None else len(text) + (0 if clear else length)
        return _Before(None, length, None, wanted_length, len(text))
    held = await reader.text(one.id, max_chars=_MAX_READ)
    if held is None:
        return _Before(None, length, None, None, len(text))
    start, end = (0, len(held)) if clear else await reader.caret(one.id)
    wanted = held[:start] + text + held[end:]
    return _Before(held, length, wanted, len(wanted), start + len(text))


async def _read_back(aiming: Aiming, one: Element, before: _Before) -> Known:
    reader = aiming.computer.accessibility
    deadline = time.monotonic() + _READ_BACK_S
    pause = _STEP_S
    while True:
        if one.is_password or before.wanted is None:
            length = await reader.text_length(one.id)
            if length is None or before.wanted_length is None:
                return "unverifiable"
            if length == before.wanted_length:
                return "confirmed"
            is_same = length == before.length
        else:
            now = await reader.text(one.id, max_chars=_MAX_READ)
            if now is not None and _plain(now) == _plain(before.wanted):
                return "confirmed"
            is_same = now == before.text
        if time.monotonic() > deadline:
            return "suspected_noop" if is_same else "partial"
        await anyio.sleep(pause)
        pause = min(0.1, pause * 1.5)


def _plain(text: str) -> str:
    # Rich text fields end their last paragraph and stand-ins for embedded objects appear in it.
    return text.replace("\r\n", "\n").replace("\ufffc", "").removesuffix("\n")
