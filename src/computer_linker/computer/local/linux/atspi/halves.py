"""Places in a text as Qt counts them: in UTF-16, where a character such as an emoji is two halves."""

from computer_linker.computer.facets.accessibility import Application

_LAST_WHOLE = "\uffff"


def is_counted_in_halves(app: Application) -> bool:
    """True for Qt."""
    return app.toolkit.lower() == "qt"


def to_halves(text: str, place: int) -> int:
    """Where Qt says the character at `place` begins."""
    return place + sum(character > _LAST_WHOLE for character in text[:place])


def from_halves(text: str, place: int) -> int:
    """Which character begins at Qt's `place`, or holds it."""
    counted = 0
    for index, character in enumerate(text):
        if counted >= place:
            return index
        counted += 2 if character > _LAST_WHOLE else 1
    return len(text)
