"""Charsets of texts that are not UTF-8: recognised, decoded, and encoded back to the same bytes."""

import codecs
from dataclasses import dataclass
from typing import Self

from computer_linker.errors import InvalidRequest

_MARKS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip
_SAMPLE = 131_072
_CONTROLS = frozenset(map(chr, (*range(9), 11, *range(14, 32))))
_USUAL = (
    "cp1252", "cp1250", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256", "iso8859_2", "iso8859_15", "shift_jis",
    "euc_jp", "gb18030", "big5", "euc_kr", "mac_roman", "cp437",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Charset:
    """A codec, and the byte order mark that the file begins with."""

    codec: str
    mark: bytes = b""

    @property
    def name(self) -> str:
        """As answers name it, and `named` takes it."""
        return self.codec + ("-bom" if self.mark else "")

    def decode(self, data: bytes) -> str:
        return data[len(self.mark) :].decode(self.codec)

    def encode(self, text: str) -> bytes:
        """The text in this charset. Raises InvalidRequest for a character that it does not have."""
        try:
            return self.mark + text.encode(self.codec)
        except UnicodeEncodeError as error:
            missing = text[error.start : error.start + 1]
            raise InvalidRequest(
                f"The file is {self.name}, which has no {missing!r} (U+{ord(missing):04X}). Write it whole in UTF-8 instead.",
                charset=self.name,
            ) from None

    @classmethod
    def marked(cls, data: bytes) -> Self | None:
        """The charset of a byte order mark; None without one."""
        return next((cls(codec, mark) for mark, codec in _MARKS if data.startswith(mark)), None)


def named(name: str, data: bytes = b"") -> Charset:
    """The charset of this name, with the mark that `data` begins with. Raises InvalidRequest for an unknown one."""
    plain = name.lower().removesuffix("-bom")
    try:
        codec = codecs.lookup(plain)
    except LookupError:
        codec = None
    if codec is None or not codec._is_text_encoding or plain in ("idna", "punycode", "undefined", "mbcs", "oem"):
        raise InvalidRequest(f"{name!r} is no charset that is known here.", field="charset")
    mark = next((mark for mark, found in _MARKS if found == plain), b"")
    has_mark = data.startswith(mark) if data else name.lower().endswith("-bom")
    return Charset(plain, mark if has_mark else b"")


def recognised(data: bytes) -> Charset | None:
    """The charset of a text, by its mark or its content; None where none fits, or no recogniser is installed.

    The whole of the text must decode and encode back to the same bytes; else writing it back would change it.
    """
    marked = Charset.marked(data)
    if marked is not None:
        return marked if _round_trips(marked, data) else None
    if _round_trips(Charset("utf-8"), data):
        return Charset("utf-8")
    if b"\0" in data[:_SAMPLE]:
        return next((one for one in map(Charset, ("utf-16-le", "utf-16-be")) if _is_plain(one, data)), None)
    codec = _guessed(data[:_SAMPLE])
    charset = None if codec is None else Charset(codec)
    return charset if charset is not None and _round_trips(charset, data) else None


def _guessed(sample: bytes) -> str | None:
    try:
        from charset_normalizer import from_bytes
    except ImportError:
        return None
    found = from_bytes(sample, cp_isolation=list(_USUAL)).best()
    if found is None:
        return None
    # Charsets of one family differ in few characters: where the text is the same, the most common of them is meant.
    same = next((name for name in _USUAL if _same(sample, name, str(found.encoding))), None)
    return same or str(found.encoding)


def _same(sample: bytes, one: str, other: str) -> bool:
    try:
        return sample.decode(one) == sample.decode(other)
    except UnicodeDecodeError:
        return False


def _round_trips(charset: Charset, data: bytes) -> bool:
    try:
        return charset.mark + charset.decode(data).encode(charset.codec) == data
    except UnicodeError:
        return False


def _is_plain(charset: Charset, data: bytes) -> bool:
    """True for UTF-16 without a mark: it decodes, and most of it is common text."""
    if not _round_trips(charset, data):
        return False
    text = charset.decode(data)
    common = sum((char.isascii() and char.isprintable()) or char in "\r\n\t" for char in text[:4096])
    return not _CONTROLS & set(text[:4096]) and common * 2 > min(len(text), 4096)
