"""Application-chosen titles and names, made safe to show: short, without control or direction characters."""

import unicodedata

_MAX = 200
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def safe_title(text: str) -> str:
    """At most 200 characters; control, direction and invisible characters are written out as escapes."""
    cut = text[:_MAX]
    safe = "".join(_visible(character) for character in cut)
    return safe if len(safe) <= _MAX and len(text) <= _MAX else safe[: _MAX - 1] + "…"


def _visible(character: str) -> str:
    if character.isprintable() or unicodedata.category(character) not in _HIDDEN:
        return character
    return f"\\u{ord(character):04x}"
