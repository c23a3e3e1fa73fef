"""Checks a field's content after a text was entered. Of a password only the length is read, never the text."""

import time
from dataclasses import dataclass

import anyio

from computer_linker.computer.facets.accessibility import Accessibility, Element
from computer_linker.model.effect import Known

_STILL_S = 2.0
"""A field that has not changed for this long counts as final."""
_AT_MOST_S = 30.0
_STEP_S = 0.01
_MAX_READ = 1_000_000


@dataclass(frozen=True, slots=True)
class Expected:
    """A field's content before a text is entered, and its expected content after. None where it cannot be read."""

    text: str | None
    length: int | None
    wanted: str | None
    wanted_lengths: tuple[int, ...]
    """The accepted lengths: a toolkit that counts in UTF-16 counts an emoji twice."""
    caret: int


async def expect(reader: Accessibility, one: Element, text: str, *, clear: bool) -> Expected:
    """The field's current content, and the content expected with the text at its caret, or alone when `clear`."""
    length = await reader.text_length(one.id)
    if one.is_password:
        kept = 0 if clear or length is None else length
        lengths = () if length is None else (kept + len(text), kept + len(text.encode("utf-16-le")) // 2)
        return Expected(None, length, None, lengths, len(text))
    held = await reader.text(one.id, max_chars=_MAX_READ)
    if held is None:
        return Expected(None, length, None, (), len(text))
    start, end = (0, len(held)) if clear else await reader.caret(one.id)
    wanted = held[:start] + text + held[end:]
    return Expected(held, length, wanted, (), start + len(text))


async def read_back(reader: Accessibility, one: Element, expected: Expected) -> Known:
    """Wait until the field has the expected content, or has stopped changing; returns what is known."""
    if expected.wanted is None and not expected.wanted_lengths:
        return "unverifiable"
    begun = changed = time.monotonic()
    pause, seen = _STEP_S, _held(expected)
    while True:
        now = await _now(reader, one, expected)
        if now is None:
            return "unverifiable"
        if _fits(now, expected):
            return "confirmed"
        if now != seen:
            seen, changed, pause = now, time.monotonic(), _STEP_S
        if time.monotonic() > min(changed + _STILL_S, begun + _AT_MOST_S):
            return "suspected_noop" if now == _held(expected) else "partial"
        await anyio.sleep(pause)
        pause = min(0.1, pause * 1.5)


def _held(expected: Expected) -> str | int | None:
    return expected.length if expected.wanted is None else expected.text


async def _now(reader: Accessibility, one: Element, expected: Expected) -> str | int | None:
    if expected.wanted is None:
        return await reader.text_length(one.id)
    return await reader.text(one.id, max_chars=_MAX_READ)


def _fits(now: str | int, expected: Expected) -> bool:
    if expected.wanted is None or isinstance(now, int):
        return now in expected.wanted_lengths
    return _plain(now) == _plain(expected.wanted)


def _plain(text: str) -> str:
    # Rich text fields append a newline, and contain placeholder characters for embedded objects.
    return text.replace("\r\n", "\n").replace("\ufffc", "").removesuffix("\n")
