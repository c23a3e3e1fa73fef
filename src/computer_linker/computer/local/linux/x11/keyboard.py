"""The X11 keyboard through XTEST, with the current layout; nothing is ever remapped."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from computer_linker.computer.facets.keyboard import MODIFIERS, key_name
from computer_linker.computer.local.linux.x11.connection import Connection
from computer_linker.computer.local.linux.x11.input import Fake, Layout, Stroke
from computer_linker.errors import InvalidRequest, UnsupportedPlatform

if TYPE_CHECKING:
    from Xlib.display import Display

_KEYS_A_SYNC = 50
_REST_S = 0.01
"""Lets the input watch keep up: some 5,000 keys a second, a hundred times a typist's."""


class X11Keyboard:
    """Keyboard on X11."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def press(self, keys: Sequence[str], *, count: int = 1) -> None:
        """One key or a chord."""
        names = [key_name(key) for key in keys]

        def work(display: "Display") -> None:
            layout, fake = Layout(display), Fake(display)
            chord = _chord(layout, names)
            for _ in range(count):
                with fake.keys_held(chord):
                    pass

        await self._connection.run(work)

    async def can_type(self, text: str) -> bool:
        """True when the layout has every character; a tab would move the focus, so it counts as missing."""
        return await self._connection.run(lambda display: _strokes(Layout(display), text) is not None)

    async def type_text(self, text: str) -> None:
        """Enter text by the keys of the layout; a line break is the Enter key."""
        await self._connection.run(lambda display: _type(display, text))


def _chord(layout: Layout, names: list[str]) -> list[int]:
    strokes = [_stroke(layout, name) for name in names]
    keycodes = [stroke.keycode for stroke in strokes]
    if any(stroke.shifted for stroke in strokes) and "shift" not in names:
        # A shifted character, such as `+`: shift belongs to the chord, before the last key.
        keycodes.insert(len(keycodes) - 1, _stroke(layout, "shift").keycode)
    return keycodes


def _stroke(layout: Layout, name: str) -> Stroke:
    found = layout.key(name)
    if found is None:
        raise InvalidRequest(f"The keyboard layout has no key {name!r}.", modifiers=list(MODIFIERS))
    return found


def _strokes(layout: Layout, text: str) -> list[Stroke] | None:
    strokes: list[Stroke] = []
    for character in text:
        stroke = None if character in "\t\b" else layout.character(character)
        if stroke is None:
            return None
        strokes.append(stroke)
    return strokes


def _type(display: "Display", text: str) -> None:
    layout, fake = Layout(display), Fake(display)
    strokes = _strokes(layout, text)
    if strokes is None:
        raise UnsupportedPlatform("The keyboard layout lacks a character of this text; paste or set it instead.")
    shift = _stroke(layout, "shift").keycode
    shift_is_down = False
    try:
        for number, stroke in enumerate(strokes, start=1):
            if stroke.shifted != shift_is_down:
                fake.key(shift, down=stroke.shifted)
                shift_is_down = stroke.shifted
            fake.key(stroke.keycode, down=True)
            fake.key(stroke.keycode, down=False)
            if number % _KEYS_A_SYNC == 0:
                fake.sync()
                time.sleep(_REST_S)
    finally:
        if shift_is_down:
            fake.key(shift, down=False)
        fake.sync()
