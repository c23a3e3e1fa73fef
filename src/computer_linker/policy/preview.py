"""What a person is shown before they say yes: the exact request, every byte visible, nothing off the screen."""

import unicodedata

_WIDTH = 100
_HEAD, _TAIL = 2000, 600


def escaped(text: str) -> str:
    """The text with control, bidirectional, invisible and unassigned characters written out."""
    return "".join(char if _is_plain(char) else _written_out(char) for char in text)


def preview(canonical: bytes, digest: str) -> str:
    """The canonical request for human eyes: escaped, wrapped, its length and digest below; a long middle is counted."""
    text = escaped(canonical.decode("utf-8"))
    if len(text) > _HEAD + _TAIL:
        left_out = len(text) - _HEAD - _TAIL
        text = f"{text[:_HEAD]} … {left_out} characters not shown … {text[-_TAIL:]}"
    lines = [text[at : at + _WIDTH] for at in range(0, len(text), _WIDTH)]
    return "\n".join([*lines, f"{len(canonical)} bytes, sha256 {digest}"])


def _is_plain(char: str) -> bool:
    if char.isascii():
        return char.isprintable()
    return unicodedata.category(char)[0] in "LNPS" or unicodedata.category(char) in ("Mn", "Mc")


def _written_out(char: str) -> str:
    code = ord(char)
    if char == " ":
        return " "
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
