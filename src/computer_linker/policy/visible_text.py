"""The text of a request for approval: the exact request, every byte visible, nothing off the screen.

Look-alikes are a small part of Unicode Technical Standard 39 (confusables): letters drawn like Latin ones, and signs drawn
like those of paths and addresses.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

_BREAKS = (" ", ",", ";:/&|)}]")
"""What a line is broken after, if it can be: a space, a comma, else another sign between two parts."""
_INDENT = 2
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
_CYRILLIC = (
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u04cf\u0501\u051b\u051d"
    "\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u04ae\u04c0\u050c"
)
_GREEK = (
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
    "\u03b1\u03b3\u03b9\u03ba\u03bd\u03bf\u03c1\u03c5\u03f2\u03f3"
)
_OTHERS = "\u0131\u0251\u0261\u0269\u0566\u0570\u0578\u057d\u0581\u0585"
_LETTERS = frozenset(_CYRILLIC + _GREEK + _OTHERS)
_SIGNS = frozenset(
    "\u01c3\u037e\u0589\u05c3\u2010\u2011\u2012\u2212\u2024\u2044\u2215\u2216\u2236\u2571\u2572\u29f5\u29f8\u29f9\ua4f8\ua789"
)
"""Like ! ; : - . / and the backslash."""
_WORD = re.compile(r"[^\W\d_]+")
_SHORTEST = 3
"""Shorter words of one script are ordinary (Russian has four of one letter)."""
_RESERVED = frozenset({"owner", "you", "system", "person", "unknown", "approver", "loopback", "unauthenticated"})
"""What the owner, a person and the service are called in the history and in requests."""
_WORDS_OF_A_NAME = 3
_OWN_NAME = re.compile(r"\W*(?:(?:cli|local|page|peer|fleet|oauth):|computer[\W_]*linker(?:/|\W*$))")
"""The beginning of a principal's name, and the name of this program; its Python library has a longer one."""
_PRINCIPALS = {"owner": "a program with the owner token"}
"""Principals whose names people could take for someone else."""


def escaped(text: str) -> str:
    """Escape control, bidirectional, invisible, unassigned and look-alike characters, and stacked combining marks."""
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    marks, deceptive = 0, lookalikes(text)
    for at, char in enumerate(text):
        # Stacked combining marks are drawn over the lines above and below.
        marks = marks + 1 if not char.isascii() and unicodedata.category(char) in ("Mn", "Mc") else 0
        is_clear = _is_plain(char) and marks <= _MAX_MARKS and at not in deceptive
        shown.append(char if is_clear else _written_out(char))
    return "".join(shown)


def client_label(name: str) -> str:
    """The name that a client gives itself, escaped for people.

    In quotes where it could pass for the owner or the service, or run on into the sentence that it stands in.
    """
    name = escaped(name)
    plain = unicodedata.normalize("NFKC", name).casefold()
    words = re.findall(r"[^\W_]+", plain)
    is_sentence = re.search(r"[^\w .,@/+~-]", name) is not None or len(name.split()) > _WORDS_OF_A_NAME
    is_claim = (
        is_sentence
        or not _RESERVED.isdisjoint(words)
        or re.sub(r"[\W_]", "", plain) in _RESERVED
        or _OWN_NAME.match(plain) is not None
    )
    return name if name.isascii() and not is_claim else _in_quotes(name)


def quoted_client(name: str) -> str:
    """The name of a client, escaped and always in quotes."""
    return _in_quotes(escaped(name))


def _in_quotes(name: str) -> str:
    return f'client "{name.replace(chr(34), chr(39))}"'


def principal_label(principal: str) -> str:
    """A proven identity, for people."""
    return _PRINCIPALS.get(principal) or escaped(principal)


def preview(canonical: bytes, digest: str) -> str:
    """Format the canonical request for a person: all of it, escaped, in one line; its length and digest below."""
    return f"{escaped(canonical.decode('utf-8'))}\n{len(canonical)} bytes, sha256 {digest}"


def folded(text: str, width: int) -> Iterator[str]:
    """The text in lines of at most `width` cells, every character of it in its place; later lines are indented further.

    A line is broken inside a word only where no line could hold the word.
    """
    further = " " * (min(len(text) - len(text.lstrip(" ")), width // 3) + _INDENT)
    at, indent, is_ascii = 0, "", text.isascii()
    while True:
        room = width - len(indent)
        end = min(at + room, len(text)) if is_ascii else _reach(text, at, room)
        if end < len(text):
            end = _break(text, at, end)
        yield indent + text[at:end]
        at, indent = end, further
        if at >= len(text):
            return


def _reach(text: str, at: int, room: int) -> int:
    """The end of what fits into so many cells."""
    for end in range(at, len(text)):
        char = text[end]
        room -= 2 if unicodedata.east_asian_width(char) in "WF" else 0 if unicodedata.combining(char) else 1
        if room < 0:
            return max(end, at + 1)
    return len(text)


def _break(text: str, at: int, end: int) -> int:
    word = text.rfind(" ", at, end) + 1
    word_end = text.find(" ", end, word + end - at - _INDENT)
    if text[at:word].strip() and (word_end >= 0 or len(text) - word <= end - at - _INDENT):
        return word
    for signs in _BREAKS:
        last = max(text.rfind(sign, at, end) for sign in signs) + 1
        if last - at > (end - at) // 2:
            return last
    return end


def beginning(shown: str, most: int) -> str:
    """Return the start of a preview, with a note that it was cut."""
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


def lookalikes(text: str) -> frozenset[int]:
    """Return the positions of characters that could be taken for ASCII ones.

    A letter counts in a word that also has ASCII letters, or that consists of look-alikes alone; a sign counts always.
    """
    found = {at for at, char in enumerate(text) if not char.isascii() and _is_sign(char)}
    for word in _WORD.finditer(text):
        letters = word.group()
        if letters.isascii():
            continue
        odd = [at for at, char in enumerate(letters) if not char.isascii() and _is_letter(char)]
        is_mixed = any(char.isascii() for char in letters)
        if odd and (is_mixed or len(odd) == len(letters) >= _SHORTEST):
            found.update(word.start() + at for at in odd)
    return frozenset(found)


@lru_cache(maxsize=4096)
def _is_letter(char: str) -> bool:
    is_listed = char in _LETTERS or "\u13a0" <= char <= "\u13f4" or "\ua4d0" <= char <= "\ua4f7"
    return is_listed or _plain(char).isalpha()


@lru_cache(maxsize=4096)
def _is_sign(char: str) -> bool:
    plain = _plain(char)
    return char in _SIGNS or (plain != "" and not plain.isalnum())


def _plain(char: str) -> str:
    """The ASCII character that this is a variant of (wide, mathematical, Roman numeral); empty for others."""
    tag = unicodedata.decomposition(char).partition(" ")[0]
    plain = unicodedata.normalize("NFKC", char)
    return plain if len(plain) == 1 and plain.isascii() and tag not in ("<super>", "<sub>", "<noBreak>") else ""


_OUTCOMES = ("added ", "changed ", "removed ", "renamed ")


def mark_of(op: str, line: str) -> str:
    """The first sign of a line of a difference; `=` for the one that begins a change of a view.

    Those of a batch are indented below their step.
    """
    if op.startswith("view.") and line.startswith(_OUTCOMES):
        return "="
    return line.lstrip(" ")[:1] if op == "batch.run" else line[:1]
