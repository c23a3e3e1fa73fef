"""What may be kept of a value: by allow list; everything else becomes a keyed digest and a length."""

import re
from functools import lru_cache

from computer_linker.audit.secret import Key

MAX_PREVIEW = 200
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._:@/()+,-]{0,79}\Z")
_PATH_NOUNS = frozenset({"file", "code", "git", "package", "command", "codex", "artifact", "process"})


@lru_cache(maxsize=4096)
def label(text: str, key: Key) -> str:
    """A name of ours or a client's: kept when it is plain, else a digest."""
    return text if _LABEL.match(text) else digest_of(text, key)


def preview(op: str, target: str, key: Key) -> str:
    """What is kept of a target."""
    if op.partition(".")[0] in _PATH_NOUNS:
        return escaped(target[:MAX_PREVIEW])
    return digest_of(target, key)


def fact(text: str, key: Key) -> str:
    """A fact an operation chose to keep."""
    return escaped(text[:MAX_PREVIEW])


def digest_of(text: str, key: Key) -> str:
    """Enough to see that two values were the same, and how long they were; nothing of what they were."""
    return f"[{len(text)} characters, {key.digest(text)}]"


def escaped(text: str) -> str:
    """Control, bidi and other invisible characters made visible."""
    return text if text.isascii() and text.isprintable() else "".join(_visible(char) for char in text)


def _visible(char: str) -> str:
    return char if char.isprintable() and char != "\\" else f"\\u{{{ord(char):x}}}"
