"""Places in a text as Qt and Firefox count them: in UTF-16, where a character such as an emoji is two halves."""

import re

from computer_linker.computer.facets.accessibility import Application

_LAST_WHOLE = "\uffff"
_PADDED = re.compile("([\U00010000-\U0010ffff])\ufeff")


def is_counted_in_halves(app: Application) -> bool:
    """True for Qt and Firefox."""
    return app.toolkit.lower() in ("qt", "gecko")


def unpadded(text: str) -> str:
    """The text without the mark that Firefox puts in place of a second half."""
    return _PADDED.sub(r"\1", text)


def to_halves(text: str, place: int) -> int:
    """Where they say the character at `place` begins."""
    return place + sum(character > _LAST_WHOLE for character in text[:place])


def from_halves(text: str, place: int) -> int:
    """Which character begins at their `place`, or holds it."""
    counted = 0
    for index, character in enumerate(text):
        if counted >= place:
            return index
        counted += 2 if character > _LAST_WHOLE else 1
    return len(text)
