"""The usual encodings of a secret, by which it is found in bytes."""

import base64
import html
import json
import re
from dataclasses import dataclass
from urllib.parse import quote, quote_plus

_B64_SKIP, _B32_SKIP = (0, 2, 3), (0, 2, 4, 5, 7)
"""Leading characters that depend on what stands before the secret, by its offset in a group."""
_WRAP = rb"(?:\\r|\\n|[\r\n\t ]){0,8}"
_BETWEEN = rb"(?:\\r|\\n|[\r\n\t :-]){0,8}"
_ANCHOR = 48
"""Longer needles are searched for by a slower algorithm."""
_MARKERS = (b"\\", b"%", b"&#", b"=", b",", b":")
_MARKS = re.compile(rb"(?:\\r|\\n|[\r\n\t :-])+")


@dataclass(frozen=True, slots=True)
class Form:
    """One encoding: its bytes, and whether it may be broken into lines or groups."""

    content: bytes
    between: bytes = b""
    step: int = 1
    """How many bytes stay together."""

    def anchor(self) -> bytes:
        """Bytes that are there wherever the form is without a break."""
        return self.content[-_ANCHOR:]

    def unbroken(self) -> bytes:
        """Bytes that are there wherever the form is, once all breaks are removed."""
        return plain(self.content)[-_ANCHOR:]

    @property
    def marker(self) -> bytes:
        """A byte that the form has and few texts have; where it is missing, no longer search is needed."""
        found = (each for each in _MARKERS if each in self.content)
        return next(found, self.content[:1])

    def pattern(self) -> bytes:
        parts = (self.content[at : at + self.step] for at in range(0, len(self.content), self.step))
        return self.between.join(map(re.escape, parts)) if self.between else re.escape(self.content)

    def fitted(self, replacement: "Form", found: bytes) -> bytes:
        """The replacement with the line breaks of what was found."""
        if len(found) == len(self.content):
            return replacement.content
        marks = list(_MARKS.finditer(found)) if self.between else []
        made, taken = bytearray(), 0
        last = 0
        for mark in marks:
            count = mark.start() - last
            made += replacement.content[taken : taken + count] + mark[0]
            taken, last = taken + count, mark.end()
        return bytes(made + replacement.content[taken:])


def forms_of(secret: str | bytes, *, is_deep: bool = False) -> list[Form]:
    """Every encoding, always in the same order, so that those of two texts of one shape pair up; of bytes, their base64 and hex.

    A deep search also finds the base64 of a text that has it in base64, as when a file is read in base64.
    """
    if isinstance(secret, bytes):
        return _forms_of_bytes(secret)
    raw = secret.encode("utf-8")
    escaped = json.dumps(secret)[1:-1]
    quoted = quote(secret, safe="")
    written = (
        secret, quoted, quote(secret), quote_plus(secret), quote(quoted, safe=""), escaped, escaped.replace("/", "\\/"),
        json.dumps(escaped)[1:-1], html.escape(secret),
    )  # fmt: skip
    spelled = (
        "%{:02X}", "%{:02x}", "\\u{:04x}", "\\u{:04X}", "\\x{:02x}", "\\x{:02X}", "&#{};", "&#x{:x};", "&#x{:X};", "={:02X}",
        "\\{:03o}",
    )  # fmt: skip
    texts = (
        *(made for text in written for made in (text, text.lower(), text.upper())),
        _lower_escapes(quoted), secret.swapcase(), secret[::-1],
        *("".join(spelling.format(byte) for byte in raw) for spelling in spelled),
        *(between.join(str(byte) for byte in raw) for between in (",", ", ", " ")),
        *(made for between in " :" for made in (raw.hex(between), raw.hex(between).upper())),
    )  # fmt: skip
    found = [Form(text.encode("utf-8")) for text in texts]
    # Little-endian without its last zero is also big-endian without its first.
    found.append(Form(secret.encode("utf-16-le")[:-1]))
    found += _forms_of_bytes(raw)
    once = _base64_of(raw)
    twice = once if is_deep else once[:1]
    found += (Form(whole) for inner in twice for one in (inner, _of_the_web(inner)) for whole in _base64_of(one))
    for at, skip in enumerate(_B32_SKIP):
        whole = base64.b32encode(bytes(at) + raw)[skip : 8 * (at + len(raw)) // 5]
        found.append(Form(whole, _WRAP))
    return found


def _forms_of_bytes(raw: bytes) -> list[Form]:
    found = [Form(text.encode("ascii"), _BETWEEN, 2) for text in (raw.hex(), raw.hex().upper())]
    for whole in _base64_of(raw):
        found += (Form(whole, _WRAP), Form(_of_the_web(whole), _WRAP))
    return found


def _base64_of(raw: bytes) -> list[bytes]:
    """What base64 has of these bytes wherever they stand, by their offset in a group of three."""
    return [base64.b64encode(bytes(at) + raw)[skip : 8 * (at + len(raw)) // 6] for at, skip in enumerate(_B64_SKIP)]


def _of_the_web(whole: bytes) -> bytes:
    return whole.replace(b"+", b"-").replace(b"/", b"_")


def _lower_escapes(quoted: str) -> str:
    return re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), quoted)


def plain(data: bytes) -> bytes:
    """Bytes without what may break a form into lines and groups."""
    return _MARKS.sub(b"", data)
