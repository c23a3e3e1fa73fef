"""Literal edits: replace an exact text, once or everywhere."""

from computer_linker.errors import Conflict, InvalidRequest, LimitExceeded
from computer_linker.providers.patching.nearest import nearest
from computer_linker.providers.patching.text import readable

MAX_TEXT = 20_000_000
"""The longest result of an edit: a short request with many replacements could otherwise grow without bound."""


def apply_edit(
    text: str, old: str, new: str, shown: str, *, replace_all: bool, may_quote: bool = True
) -> tuple[str, int]:
    """The new text and how often it was replaced. Both texts are literal; nothing in them is a pattern.

    Raises Conflict when `old` is not there, or is there more than once and `replace_all` was not asked for, and
    LimitExceeded when the new text would be too long.
    """
    if not old:
        raise InvalidRequest("`oldText` must not be empty.", path=shown)
    if old not in text and _is_crlf(text) and "\r" not in old:
        old, new = old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
    count = text.count(old)
    if count == 0:
        details = nearest(readable(text), old) if may_quote else {}
        raise Conflict(
            f"`oldText` is not in {shown}. Compare it with the nearest text.", path=shown, matches=0, **details
        )
    if count > 1 and not replace_all:
        raise Conflict(
            f"`oldText` is in {shown} {count} times. Give more of its surroundings, or use replaceAll.",
            path=shown,
            matches=count,
            lines=_lines_of(text, old),
        )
    if len(text) + count * (len(new) - len(old)) > MAX_TEXT:
        raise LimitExceeded(f"{shown} would be longer than {MAX_TEXT} characters.", path=shown, maxCharacters=MAX_TEXT)
    return text.replace(old, new), count


def _is_crlf(text: str) -> bool:
    newlines = text.count("\n")
    return newlines > 0 and newlines == text.count("\r\n")


def _lines_of(text: str, old: str) -> list[int]:
    lines: list[int] = []
    at = text.find(old)
    while at >= 0 and len(lines) < 10:
        lines.append(text.count("\n", 0, at) + 1)
        at = text.find(old, at + len(old))
    return lines
