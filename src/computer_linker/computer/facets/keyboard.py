"""Keyboard: keys by name, and text that the layout has."""

from collections.abc import Sequence
from typing import Protocol

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
