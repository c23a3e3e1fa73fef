"""Entering text at the focus: by keys where the layout has every character, else by a paste.

After a paste the clipboard's content is restored. Binding spare keys to foreign characters corrupts text
(applications read the new layout late), so it is never done.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import anyio

from computer_linker.computer.facets.accessibility import Accessibility, Element
from computer_linker.computer.facets.clipboard import Clip, Clipboard, WithPrimary, text_clip
from computer_linker.errors import LimitExceeded, LinkError, UnsupportedPlatform
from computer_linker.model.effect import Known

if TYPE_CHECKING:
    from computer_linker.computer.base import Computer

EntryMethod = Literal["keys", "paste"]
Check = Callable[[], Awaitable[Known]]
Settled = Callable[[], Awaitable[object]]
_BY_KEYS_AT_MOST = 40
_TAKEN_S = 2.0
_RESTORE_S = 2.0
_UNTOLD_S = 0.4
_PASTE = ("ctrl", "v")
_TERMINAL_PASTE = ("ctrl", "shift", "v")
_PRIMARY_PASTE = ("shift", "insert")
_TERMINALS = frozenset(
    "gnome-terminal gnome-terminal-server org.gnome.terminal konsole org.kde.konsole xfce4-terminal kitty alacritty foot "
    "terminator tilix mate-terminal lxterminal qterminal ptyxis org.gnome.ptyxis wezterm org.wezfurlong.wezterm".split()
)
_ONLY_KEYS = frozenset("xterm uxterm urxvt rxvt st st-256color".split())
"""Terminals whose ctrl+V types a control character. What the layout lacks is pasted from the primary selection of X11."""


@dataclass(frozen=True, slots=True)
class Entered:
    """How a text was entered, and what is known of it: `confirmed` only when it was read back."""

    method: EntryMethod
    effect: Known


async def enter_text(
    computer: "Computer", text: str, *, prefer: EntryMethod | None = None, check: Check | None = None
) -> Entered:
    """Enter text by the faster exact method; `prefer` forces one. The person's clipboard is restored after a paste.

    `check` reads back the result; without it the effect is unverifiable.
    """
    app = await _focused_app(computer) if prefer is None else ""
    if prefer == "keys" or (prefer is None and await _best_by_keys(computer, text, app)):
        await computer.keyboard.type_text(text)
        return Entered("keys", "unverifiable" if check is None else await check())
    known: list[Known] = []

    async def settled() -> None:
        if check is not None:
            known.append(await check())

    clipboard, chord = _pasted_from(computer, app)
    taken = await paste_text(computer, text, settled=settled, chord=chord, clipboard=clipboard)
    untold: Known = "suspected_noop" if taken is False else "unverifiable"
    return Entered("paste", known[0] if known else untold)


def _pasted_from(computer: "Computer", app: str) -> tuple[Clipboard, Sequence[str]]:
    """The selection an application pastes from, and its keys for that."""
    if app not in _ONLY_KEYS:
        return computer.clipboard, _TERMINAL_PASTE if app in _TERMINALS else _PASTE
    primary = computer.clipboard.primary if isinstance(computer.clipboard, WithPrimary) else None
    if primary is None:
        raise UnsupportedPlatform("This terminal cannot paste, and the keyboard layout lacks a character of the text.")
    return primary, _PRIMARY_PASTE


async def enter_and_read_back(computer: "Computer", text: str) -> Entered:
    """Enter text at the focus, and read it back where the application exposes the field."""
    field = await _focused_field(computer)
    if field is None:
        return await enter_text(computer, text)
    expected = await expect(computer.accessibility, field, text, clear=False)
    return await enter_text(computer, text, check=partial(read_back, computer.accessibility, field, expected))


async def _focused_field(computer: "Computer") -> Element | None:
    if not computer.capabilities().has("accessibility"):
        return None
    try:
        one = await computer.accessibility.focused()
    except LinkError:
        # No accessibility bus, or an application that does not answer: the text can be entered anyway.
        return None
    return one if one is not None and ("EditableText" in one.interfaces or "editable" in one.states) else None


async def _best_by_keys(computer: "Computer", text: str, app: str) -> bool:
    """True for short texts, terminals (a paste may execute), without a clipboard, and where keys accept everything."""
    takes_all = getattr(computer.keyboard, "takes_any_character", False)
    has_no_other = takes_all or not computer.capabilities().has("clipboard")
    wanted = len(text) <= _BY_KEYS_AT_MOST or has_no_other or app in _TERMINALS or app in _ONLY_KEYS
    return wanted and await computer.keyboard.can_type(text)


async def _focused_app(computer: "Computer") -> str:
    if not computer.capabilities().has("windows"):
        return ""
    window = await computer.windows.focused()
    return "" if window is None else window.app.lower()


async def paste_text(
    computer: "Computer",
    text: str,
    *,
    settled: Settled | None = None,
    chord: Sequence[str] = _PASTE,
    clipboard: Clipboard | None = None,
) -> bool | None:
    """Paste text with ctrl+V, or with other keys from another selection, and restore what it held.

    True once the focused application fetched it, False when it did not, None where that is not observable. Browsers fetch
    new content before they paste it, so a caller that can see the text arrive passes `settled`, which is awaited before
    the clipboard is restored.
    """
    clipboard = computer.clipboard if clipboard is None else clipboard
    before = await _held(clipboard)
    await clipboard.write(text_clip(text))
    try:
        await computer.keyboard.press(chord)
        taken = await clipboard.taken(_TAKEN_S)
        if taken is None:
            # The fetch is not observable; restoring too early would paste the old content.
            await anyio.sleep(_UNTOLD_S)
        if settled is not None:
            await settled()
        return taken
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(_RESTORE_S):
            await clipboard.write(before)


async def _held(clipboard: Clipboard) -> Clip:
    try:
        return await clipboard.snapshot()
    except LimitExceeded:
        # Losing the person's clipboard is worse than refusing to paste.
        raise LimitExceeded("The clipboard holds more than can be put back after a paste.") from None


# Checks a field's content after a text was entered. Of a password only the length is read, never the text.


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
    pause, seen = _STEP_S, _holds(expected)
    while True:
        now = await _now(reader, one, expected)
        if now is None:
            return "unverifiable"
        if _fits(now, expected):
            return "confirmed"
        if now != seen:
            seen, changed, pause = now, time.monotonic(), _STEP_S
        if time.monotonic() > min(changed + _STILL_S, begun + _AT_MOST_S):
            return "suspected_noop" if now == _holds(expected) else "partial"
        await anyio.sleep(pause)
        pause = min(0.1, pause * 1.5)


def _holds(expected: Expected) -> str | int | None:
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
