"""File names in the headers of a diff: quotes, prefixes, and the two names of a plain section."""

import re

from computer_linker.errors import InvalidRequest

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_PAIRS = (("a/", "b/"), ("i/", "w/"), ("c/", "i/"), ("c/", "w/"), ("o/", "w/"))
"""Git's prefixes, and those it writes with `diff.mnemonicPrefix`: commit, index, object, work tree."""
_BACKUPS = (".orig", "~")
_EPOCH = re.compile(r"(?:1969-12-31|1970-01-01) \d\d:(\d\d):00(?:\.0+)? ([+-]\d\d):?(\d\d)\Z")
_EPOCH_HOUR = re.compile(r"(\d{4})-\d\d-\d\d (\d\d):")


def is_epoch(stamp: str) -> bool:
    """True for the time 0 that diff -N writes beside the name of an absent file, in any time zone."""
    found, hour = _EPOCH.match(stamp), _EPOCH_HOUR.match(stamp)
    if found is None or hour is None:
        return False
    minutes = int(hour[2]) * 60 + int(found[1]) - (1440 if hour[1] == "1969" else 0)
    sign = -1 if found[2].startswith("-") else 1
    return minutes == sign * (abs(int(found[2])) * 60 + int(found[3]))


def one_name(old: str, new: str) -> str | None:
    """The file that a plain section changes: the equal name, the one that is no backup, or what follows a first folder."""
    for tail in _BACKUPS:
        old, new = (old.removesuffix(tail), new) if old.removesuffix(tail) == new else (old, new)
    if old == new:
        return new
    first, second = old.partition("/")[2], new.partition("/")[2]
    for tail in _BACKUPS:
        first = second if first.removesuffix(tail) == second else first
    return second if first == second and second else None


def without_prefixes(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """Strip git's a/ and b/, or another of its pairs, where both sides have them."""
    if (old is None or old.startswith("a/")) and (new is None or new.startswith("b/")):
        return (None if old is None else old[2:]), (None if new is None else new[2:])
    # A single name may begin with a folder that is called like one of the others.
    if old is not None and new is not None and (old[:2], new[:2]) in _PAIRS:
        return old[2:], new[2:]
    return old, new


def unquoted(text: str) -> str | None:
    """A name in git's C-style quotes."""
    out = bytearray()
    at = 1
    while at < len(text):
        char = text[at]
        if char == '"':
            try:
                return out.decode("utf-8")
            except UnicodeDecodeError:
                return None
        if char == "\\":
            if text[at + 1 : at + 4].isdigit() and len(text[at + 1 : at + 4]) == 3:
                value = int(text[at + 1 : at + 4], 8) if set(text[at + 1 : at + 4]) <= set("01234567") else 256
                if value > 255:
                    return None
                out.append(value)
                at += 4
                continue
            escaped = _ESCAPES.get(text[at + 1 : at + 2])
            if escaped is None:
                return None
            out += escaped.encode()
            at += 2
            continue
        out += char.encode("utf-8", "replace")
        at += 1
    return None


def plain_name(text: str) -> str:
    name = unquoted(text) if text.startswith('"') else text
    if not name or any(ord(char) < 32 for char in name):
        raise InvalidRequest("The patch renames a file to or from a name that cannot be used.")
    return name


def same_name(header: str) -> str | None:
    """The name in `a/NAME b/NAME`, where both are the same."""
    half = len(header) // 2
    left, right = header[:half], header[half + 1 :]
    is_pair = (left[:2], right[:2]) in _PAIRS
    return plain_name(left[2:]) if header[half : half + 1] == " " and is_pair and left[2:] == right[2:] else None
