"""Replaces secrets, in every usual encoding, in whole texts and in streams."""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from computer_linker.vault.forms import Form, forms_of, plain

_PRINTABLE = bytes(int(32 <= byte < 127 or byte in b"\t\r\n") for byte in range(256))
"""Translates printable characters to 1 and all others to 0."""


_BREAKS = frozenset((b"", *(bytes((byte,)) for byte in b"\\\r\n\t :-")))
"""What may follow the first byte of a secret instead of its second: nothing yet, or a break."""


class Replaced(NamedTuple):
    """A secret, and what stands in its place: a text of the same shape, or a mark for every encoding alike."""

    secret: str
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
            self._anchors[form.marker] = tuple(dict.fromkeys((*known, *form.anchors())))
        self._wide = {marker: tuple(each for each in found if b"\0" in each) for marker, found in self._anchors.items()}
        narrow = [len(each) for found in self._anchors.values() for each in found if b"\0" not in each]
        self._run = b"\1" * min(narrow, default=0)
        self.window = 2 * len(self._pairs[0][0].content) + 64 if self._pairs else 0
        """The longest piece that can be a part of one encoding."""

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def may_be_in(self, data: bytes | bytearray) -> bool:
        """Whether a part of a secret is there; one search for each encoding that the data can have at all."""
        anchors = self._anchors
        if not data.isascii() and self._run not in data.translate(_PRINTABLE):
            # Without a run of printable characters only what has zeros between them is left.
            anchors = self._wide
        return any(anchor in data for marker in anchors if marker in data for anchor in anchors[marker])

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

    def open_end(self, data: bytes) -> int:
        """How many bytes at the end may be the beginning of a secret."""
        tail = data[-self.window :].lower()
        firsts, pairs = self._firsts, self._pairs_at_start
        for at, byte in enumerate(tail):
            # Two bytes tell nearly every other text apart, and this runs for every piece of a stream.
            if (
                byte in firsts
                and (tail[at : at + 2] in pairs or tail[at + 1 : at + 2] in _BREAKS)
                and self._may_begin(tail[at:])
            ):
                return len(tail) - at
        return 0

    def _may_begin(self, rest: bytes) -> bool:
        if any(start.startswith(rest) for start in self._starts):
            return True
        # A break that is written as an escape may itself be cut in two.
        bare = plain(rest).rstrip(b"\\")
        return bare != rest and any(start.startswith(bare) for start in self._bare_starts)

    @cached_property
    def _firsts(self) -> frozenset[int]:
        return frozenset(start[0] for start in self._starts)

    @cached_property
    def _pairs_at_start(self) -> frozenset[bytes]:
        return frozenset(start[:2] for start in self._starts)

    @cached_property
    def _starts(self) -> tuple[bytes, ...]:
        return tuple({form.content.lower() for form, _ in self._pairs})

    @cached_property
    def _bare_starts(self) -> tuple[bytes, ...]:
        return tuple({plain(form.content).lower() for form, _ in self._pairs if form.between})

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
    """Masks what comes in pieces: only what may be the beginning of a secret is held back."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """What of everything so far can go on."""
        data = self._mask.masked(self._held + piece if self._held else piece)
        open_end = self._mask.open_end(data)
        self._held = data[len(data) - open_end :] if open_end else b""
        return data[: len(data) - open_end] if open_end else data

    @property
    def holds(self) -> bool:
        return bool(self._held)

    def finish(self) -> bytes:
        """What was held back, at the end."""
        data, self._held = self._held, b""
        return data
