"""Entering text at the focus: by keys where the layout has every character, else by a paste.

After a paste the clipboard's content is restored. Binding spare keys to foreign characters corrupts text
(applications read the new layout late), so it is never done.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import anyio

from computer_linker.computer.facets.accessibility import Element
from computer_linker.computer.facets.clipboard import Clip, Clipboard, WithPrimary, text_clip
from computer_linker.computer.text_check import expect, read_back
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
