"""UTF-16 offsets, as Qt and Firefox count positions in a text: an emoji, for example, is two code units."""

import re

from computer_linker.computer.facets.accessibility import Application

_LAST_SINGLE_UNIT = "\uffff"
_PADDED = re.compile("([\U00010000-\U0010ffff])\ufeff")


def uses_utf16_offsets(app: Application) -> bool:
    """True for Qt and Firefox."""
    return app.toolkit.lower() in ("qt", "gecko")


def unpadded(text: str) -> str:
    """The text without the placeholder that Firefox inserts for a second surrogate."""
    return _PADDED.sub(r"\1", text)


def to_utf16(text: str, index: int) -> int:
    """The UTF-16 offset of the character at `index`."""
    return index + sum(character > _LAST_SINGLE_UNIT for character in text[:index])


def from_utf16(text: str, offset: int) -> int:
    """The index of the character that contains the UTF-16 `offset`."""
    counted = 0
    for index, character in enumerate(text):
        if counted >= offset:
            return index
        counted += 2 if character > _LAST_SINGLE_UNIT else 1
    return len(text)
