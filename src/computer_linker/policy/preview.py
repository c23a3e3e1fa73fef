"""What a person is shown before they say yes: the exact request, every byte visible, nothing off the screen."""

import unicodedata

_WIDTH = 100
_MAX_MARKS = 4
_UNSEEN = frozenset(
    chr(code)
    for first, last in (
        *((0x34F, 0x34F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2800, 0x2800), (0x3164, 0x3164)),
        *((0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0100, 0xE01EF)),
    )
    for code in range(first, last + 1)
)
"""Letters, marks and signs by their category that no terminal or browser draws anything for."""


def escaped(text: str) -> str:
    """The text with control, bidirectional, invisible and unassigned characters written out, and marks heaped on a letter too."""
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    marks = 0
    for char in text:
        # A heap of marks is painted over the lines above and below.
        marks = marks + 1 if not char.isascii() and unicodedata.category(char) in ("Mn", "Mc") else 0
        shown.append(char if _is_plain(char) and marks <= _MAX_MARKS else _written_out(char))
    return "".join(shown)


def preview(canonical: bytes, digest: str) -> str:
    """The canonical request for human eyes: all of it, escaped and wrapped, its length and digest below."""
    text = escaped(canonical.decode("utf-8"))
    lines = [text[at : at + _WIDTH] for at in range(0, len(text), _WIDTH)]
    return "\n".join([*lines, f"{len(canonical)} bytes, sha256 {digest}"])


def beginning(shown: str, most: int) -> str:
    """The start of a preview for a place that cannot show all of it, which says so."""
    return f"{shown[:most]}\n… {len(shown) - most} more characters, which are not shown here."


def _is_plain(char: str) -> bool:
    if char.isascii():
        return char.isprintable()
    if char in _UNSEEN:
        return False
    return unicodedata.category(char)[0] in "LNPS" or unicodedata.category(char) in ("Mn", "Mc")


def _written_out(char: str) -> str:
    code = ord(char)
    if char == " ":
        return " "
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
