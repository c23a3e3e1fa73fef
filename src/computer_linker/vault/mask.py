"""Replaces secrets, in every usual encoding, in whole texts and in streams."""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from computer_linker.vault.forms import Form, forms_of

_PRINTABLE = bytes(int(32 <= byte < 127 or byte in b"\t\r\n") for byte in range(256))
"""Translates printable characters to 1 and all others to 0."""


_BREAK_BYTES = b"\r\n\t :-"
_LINE_END = re.compile(rb"[^0-9A-Za-z+/=_\\\r\n\t :-][\r\n]*\n")
"""The end of a line that no broken encoding goes on from: its last character is neither of an encoding nor of a break."""


class Replaced(NamedTuple):
    """A secret, and what stands in its place: a text of the same shape, or a mark for every encoding alike."""

    secret: str | bytes
    by: str
    is_placeholder: bool = False


class Mask:
    """Finds secrets. Falsy without any, so that a caller can skip all work."""

    def __init__(self, replaced: Iterable[Replaced]) -> None:
        pairs: dict[bytes, tuple[Form, Form]] = {}
        for each in replaced:
            forms = forms_of(each.secret, is_deep=not each.is_placeholder)
            mark = Form(each.by.encode("utf-8"))
            others = forms_of(each.by) if each.is_placeholder else [mark] * len(forms)
            for form, other in zip(forms, others, strict=True):
                if each.is_placeholder and len(other.content) != len(form.content):
                    # Decimal numbers differ in length, and the length of an answer is fixed by its head.
                    other = Form(b"*" * len(form.content))
                pairs.setdefault(form.content, (form, other))
        self._pairs = sorted(pairs.values(), key=lambda pair: -len(pair[0].content))
        self._anchors: dict[bytes, tuple[bytes, ...]] = {}
        """What to search for, by the byte without which it cannot be there."""
        for form, _ in self._pairs:
            known = self._anchors.get(form.marker, ())
            self._anchors[form.marker] = tuple(dict.fromkeys((*known, form.anchor())))
        self._unbroken = tuple(dict.fromkeys(form.unbroken() for form, _ in self._pairs if form.between))
        """What to search for in text without its breaks: a tool may break it anywhere, and more than once."""
        self._wide = {marker: tuple(each for each in found if b"\0" in each) for marker, found in self._anchors.items()}
        narrow = [len(each) for found in self._anchors.values() for each in found if b"\0" not in each]
        self._run = b"\1" * min(narrow, default=0)
        self.window = 2 * len(self._pairs[0][0].content) + 64 if self._pairs else 0
        """The longest piece that can be a part of one encoding."""
        self.has_lines = any(b"\n" in form.content for form, _ in self._pairs)
        """A secret has more than one line."""

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def may_be_in(self, data: bytes | bytearray) -> bool:
        """Whether a part of a secret is there; one search for each encoding that the data can have at all."""
        anchors = self._anchors
        if not data.isascii() and self._run not in data.translate(_PRINTABLE):
            # Without a run of printable characters only what has zeros between them is left.
            anchors = self._wide
        if any(anchor in data for marker in anchors if marker in data for anchor in anchors[marker]):
            return True
        return anchors is self._anchors and self._may_be_broken(data)

    def _may_be_broken(self, data: bytes | bytearray) -> bool:
        """Whether an encoding that may have breaks is there in lines or groups, of any length."""
        bare = data.translate(None, _BREAK_BYTES)
        if b"\\" in bare:
            bare = bare.replace(b"\\r", b"").replace(b"\\n", b"")
        return len(bare) != len(data) and any(each in bare for each in self._unbroken)

    def masked(self, data: bytes) -> bytes:
        """The bytes with every secret replaced; the same object where there is none."""
        return self._pattern.sub(self._by, data) if self.may_be_in(data) else data

    def masked_text(self, text: str) -> str:
        """The text with every secret replaced; the same object where there is none."""
        if not self._pairs:
            return text
        data = text.encode("utf-8", "surrogatepass")
        made = self.masked(data)
        return text if made is data else made.decode("utf-8", "surrogatepass")

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        return re.compile(b"|".join(form.pattern() for form, _ in self._pairs))

    @cached_property
    def _patterns(self) -> Sequence[tuple[re.Pattern[bytes], Form, Form]]:
        return [(re.compile(form.pattern()), form, other) for form, other in self._pairs]

    def _by(self, match: re.Match[bytes]) -> bytes:
        found = match[0]
        form, other = next((form, other) for one, form, other in self._patterns if one.fullmatch(found))
        return form.fitted(other, found) if len(other.content) == len(form.content) else other.content


class MaskedStream:
    """Masks what comes in pieces. The end of it is held back, so that a secret is whole before it is looked for.

    How much is held, and how long, does not depend on what it is: who can have text printed and sees what is held would
    else find a secret letter by letter.
    """

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._held = b""
        self._aged = 0
        """How many of the held bytes were held at the last tick already."""

    def feed(self, piece: bytes) -> bytes:
        """What of everything so far can go on."""
        whole = self._held + piece if self._held else piece
        data = self._mask.masked(whole)
        room = min(len(data), self._mask.window)
        out = data[: len(data) - room]
        self._held = data[len(data) - room :]
        self._aged = max(0, self._aged - len(out)) if data is whole else 0
        return out

    def whole_lines(self) -> bytes:
        """What is held up to the end of a line that no secret can go on from. Which line that is depends on no secret."""
        at = 0
        if not self._mask.has_lines:
            at = max((found.end() for found in _LINE_END.finditer(self._held)), default=0)
        data, self._held = self._held[:at], self._held[at:]
        self._aged = max(0, self._aged - at)
        return data

    def tick(self) -> bytes:
        """What has been held since the last tick; called in even steps while something is held."""
        data, self._held = self._held[: self._aged], self._held[self._aged :]
        self._aged = len(self._held)
        return data

    @property
    def holds(self) -> bool:
        return bool(self._held)

    def finish(self) -> bytes:
        """What was held back, at the end."""
        data, self._held, self._aged = self._held, b"", 0
        return data
