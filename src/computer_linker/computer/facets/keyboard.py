"""Keyboard: keys by name, one table of names for every backend, and text that the layout has."""

from collections.abc import Sequence
from typing import Protocol

from computer_linker.errors import InvalidRequest
from computer_linker.model.base import Model


class KeyEvent(Model):
    """One act of the keyboard as a value, for Computer.key: a key with its modifiers, or text."""

    key: str | None = None
    modifiers: list[str] = []
    count: int = 1
    text: str | None = None


class Keyboard(Protocol):
    """The keyboard of a desktop. Every key is released again, whatever happens.

    Key names are lower case: `a`, `7`, `/`, `enter`, `tab`, `escape`, `backspace`, `delete`, `space`, `up`, `page_down`,
    `home`, `f1` to `f24`, and the modifiers `ctrl`, `alt`, `shift`, `super`. See keys.py for all of them.
    """

    async def press(self, keys: Sequence[str], *, count: int = 1) -> None:
        """Press the keys in order and release them in reverse: one key, or a chord such as ctrl, shift, t.

        Raises:
            InvalidRequest: a name is not a key, or the layout has no such key.
        """
        ...

    async def can_type(self, text: str) -> bool:
        """True when every character can be entered by keys exactly as it is."""
        ...

    async def type_text(self, text: str) -> None:
        """Enter text by keys.

        Raises:
            UnsupportedPlatform: a character is not on the layout; paste or set the text instead.
        """
        ...


MODIFIERS = ("ctrl", "alt", "shift", "super")

_SAME_AS = {
    "control": "ctrl", "ctl": "ctrl", "option": "alt", "cmd": "super", "command": "super", "win": "super", "meta": "super",
    "return": "enter", "esc": "escape", "del": "delete", "ins": "insert", "bksp": "backspace", "pgup": "page_up",
    "pageup": "page_up", "pgdn": "page_down", "pagedown": "page_down", "arrowup": "up", "arrowdown": "down",
    "arrowleft": "left", "arrowright": "right", "spacebar": "space", "capslock": "caps_lock", "printscreen": "print_screen",
    "plus": "+", "minus": "-", "comma": ",", "period": ".", "slash": "/",
}  # fmt: skip

X11_KEYSYMS: dict[str, int] = {
    "ctrl": 0xFFE3, "alt": 0xFFE9, "shift": 0xFFE1, "super": 0xFFEB,
    "enter": 0xFF0D, "tab": 0xFF09, "escape": 0xFF1B, "backspace": 0xFF08, "delete": 0xFFFF, "insert": 0xFF63,
    "space": 0x20, "up": 0xFF52, "down": 0xFF54, "left": 0xFF51, "right": 0xFF53,
    "home": 0xFF50, "end": 0xFF57, "page_up": 0xFF55, "page_down": 0xFF56,
    "caps_lock": 0xFFE5, "num_lock": 0xFF7F, "scroll_lock": 0xFF14, "print_screen": 0xFF61, "pause": 0xFF13, "menu": 0xFF67,
    **{f"f{number}": 0xFFBD + number for number in range(1, 25)},
}  # fmt: skip
"""Named keys as X11 keysyms; xkb, and so Wayland, uses the same numbers."""


def key_name(given: str) -> str:
    """The canonical name of a key: lower case, synonyms folded, or a single character.

    Raises:
        InvalidRequest: there is no such key.
    """
    name = given if len(given) == 1 else given.strip().lower().replace(" ", "_").replace("-", "_")
    name = _SAME_AS.get(name.replace("_", ""), _SAME_AS.get(name, name))
    if name in X11_KEYSYMS or (len(name) == 1 and name.isprintable()):
        return name.lower() if len(name) == 1 and name.isascii() and name.isalpha() else name
    raise InvalidRequest(f"There is no key {given[:30]!r}.", keys=sorted(X11_KEYSYMS))


def keysym_of(name: str) -> int:
    """The X11 keysym of a key name or character."""
    if name in X11_KEYSYMS:
        return X11_KEYSYMS[name]
    return character_keysym(name)


def character_keysym(character: str) -> int:
    """The X11 keysym of a character."""
    number = ord(character)
    match character:
        case "\n" | "\r":
            return 0xFF0D
        case "\t":
            return 0xFF09
        case "\b":
            return 0xFF08
        case _:
            return number if 0x20 <= number <= 0x7E or 0xA0 <= number <= 0xFF else 0x01000000 | number
