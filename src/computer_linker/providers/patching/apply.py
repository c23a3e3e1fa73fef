"""Applies hunks to text: exact context, at the stated line or at its only other occurrence.

As with git apply, a hunk without context after its change belongs at the file's end, and one that starts at the first line
without context before it belongs there; else an addition that was applied already would fit a second time.
"""

import base64
import binascii
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

from computer_linker.changes.difference import TimedMatcher, TookTooLong, split_lines
from computer_linker.errors import Conflict, InvalidRequest, LimitExceeded
from computer_linker.providers.patching.diff import FilePatch, Hunk


def apply_hunks(text: str, patch: FilePatch, shown: str, *, may_quote: bool = True) -> str:
    """The new text. Raises Conflict, with the nearest match where that helps, when a hunk does not apply.

    A file without a final newline stays without one, unless the patch itself changes that.
    """
    speaks_of_end = any(not line.endswith("\n") for hunk in patch.hunks for line in (*hunk.old, *hunk.new))
    if text and not text.endswith("\n") and not speaks_of_end:
        return _applied(text + "\n", patch, shown, may_quote).removesuffix("\n")
    return _applied(text, patch, shown, may_quote)


def _applied(text: str, patch: FilePatch, shown: str, may_quote: bool) -> str:
    lines = split_lines(text)
    hunks = _with_line_ends(patch.hunks, lines)
    positions: dict[str, list[int]] | None = None
    out: list[str] = []
    done = shift = 0
    for number, hunk in enumerate(hunks, start=1):
        stated = (hunk.old_start if not hunk.old else hunk.old_start - 1) + shift
        fixed = _fixed_place(hunk, len(lines))
        wanted = stated if fixed is None else fixed
        at = wanted if _fits(lines, hunk.old, wanted) and wanted >= done else None
        if at is not None and not hunk.old and _is_there(lines, hunk.new, at):
            raise _applied_already(number, shown, at)
        if at is None and hunk.old:
            positions = _positions(lines) if positions is None else positions
            places = [place for place in _places(lines, positions, hunk.old) if place >= done]
            if places and fixed is not None:
                raise _elsewhere(places, number, shown, "end" if hunk.ties_to_end else "beginning")
            if len(places) > 1:
                raise _ambiguous(places, number, shown)
            at = places[0] if places else None
        if at is None:
            raise _missed(text, hunk, number, shown, may_quote)
        shift += at - stated
        out += lines[done:at]
        out += hunk.new
        done = at + len(hunk.old)
    out += lines[done:]
    return _joined(out, shown)


def _fixed_place(hunk: Hunk, count: int) -> int | None:
    """The only index where this hunk may apply; None when its context decides."""
    if hunk.ties_to_end:
        return count - len(hunk.old)
    return 0 if hunk.ties_to_start else None


def _is_there(lines: list[str], new: list[str], at: int) -> bool:
    return bool(new) and lines[at : at + len(new)] == new


def _joined(lines: Iterable[str], shown: str) -> str:
    whole = list(lines)
    if any(not line.endswith("\n") for line in whole[:-1]):
        raise Conflict(f"The patch would join lines in {shown}: a line without an end is not the last.", path=shown)
    return "".join(whole)


def _with_line_ends(hunks: list[Hunk], lines: list[str]) -> list[Hunk]:
    """The hunks with CRLF line ends, where the file has only those and the patch has none."""
    ended = [line for line in lines if line.endswith("\n")]
    if not ended or not all(line.endswith("\r\n") for line in ended):
        return hunks
    if any(line.endswith("\r\n") for hunk in hunks for line in (*hunk.old, *hunk.new)):
        return hunks
    return [
        replace(hunk, old=[_crlf(line) for line in hunk.old], new=[_crlf(line) for line in hunk.new]) for hunk in hunks
    ]


def _crlf(line: str) -> str:
    return line[:-1] + "\r\n" if line.endswith("\n") else line


def _fits(lines: list[str], old: list[str], at: int) -> bool:
    return 0 <= at <= len(lines) and lines[at : at + len(old)] == old


def _positions(lines: list[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        found.setdefault(line, []).append(number)
    return found


def _places(lines: list[str], positions: dict[str, list[int]], old: list[str]) -> list[int]:
    """Occurrences of the old lines, searched by the rarest of them so that long files stay fast."""
    offset = min(range(len(old)), key=lambda number: len(positions.get(old[number], ())))
    found: list[int] = []
    for place in positions.get(old[offset], ()):
        if _fits(lines, old, place - offset):
            found.append(place - offset)
            if len(found) > 1000:
                break
    return found


def _applied_already(number: int, shown: str, at: int) -> Conflict:
    return Conflict(
        f"Hunk {number} has no context, and what it adds already stands there in {shown}. Give context to add it again.",
        path=shown,
        hunk=number,
        lines=[at + 1],
    )


def _elsewhere(places: list[int], number: int, shown: str, edge: str) -> Conflict:
    side = "after" if edge == "end" else "before"
    return Conflict(
        f"Hunk {number} has no context {side} its change, so it applies only at the {edge} of {shown}, and its lines stand "
        f"elsewhere. Give the lines {side} it, or leave it out if it was applied already.",
        path=shown,
        hunk=number,
        lines=[place + 1 for place in places[:10]],
    )


def _ambiguous(places: list[int], number: int, shown: str) -> Conflict:
    return Conflict(
        f"Hunk {number} does not stand at its line in {shown}, and its context is there more than once. Give more context.",
        path=shown,
        hunk=number,
        lines=[place + 1 for place in places[:10]],
    )


def _missed(text: str, hunk: Hunk, number: int, shown: str, may_quote: bool) -> Conflict:
    details = nearest(readable(text), readable("".join(hunk.old))) if may_quote else {}
    return Conflict(
        f"Hunk {number} does not fit {shown}: its context is not there. Read the file again.",
        path=shown,
        hunk=number,
        **details,
    )


# File bytes as text and back, whatever their encoding: bytes that are not UTF-8 become lone surrogates and return
# unchanged.

_ESCAPED = "surrogateescape"


def as_text(data: bytes) -> str:
    """The bytes as text that `as_bytes` turns back exactly."""
    return data.decode("utf-8", _ESCAPED)


def as_bytes(text: str) -> bytes:
    """The bytes of a text that came from `as_text`, or of plain text."""
    return text.encode("utf-8", _ESCAPED)


def readable(text: str) -> str:
    """The text with a replacement character for each byte that is not UTF-8, for an answer."""
    return as_bytes(text).decode("utf-8", "replace")


def given_text(text: str, encoding: Literal["utf8", "base64"], field: str) -> str:
    """The text of a request. Raises InvalidRequest for bad base64 and for a lone surrogate: no client names a byte by one."""
    try:
        if encoding == "base64":
            return as_text(base64.b64decode(text.encode("ascii"), validate=True))
        text.encode("utf-8")
    except binascii.Error:
        raise InvalidRequest(f"`{field}` is not base64.", field=field) from None
    except UnicodeEncodeError:
        raise InvalidRequest(f"`{field}` holds characters that no encoded text has.", field=field) from None
    return text


# The text nearest to one that was not found, and how they differ, character by character.

_MAX_LINES = 20_000
_MAX_WANTED = 200
_MAX_SHOWN = 2_000
_BUDGET_S = 0.25


def nearest(text: str, wanted: str) -> dict[str, Any]:
    """`nearest` (position and text) and `difference` (the differing pieces), or nothing when nothing is similar."""
    lines = text.split("\n")[:_MAX_LINES]
    sought = wanted.rstrip("\n").split("\n")[:_MAX_WANTED]
    start = _best_start(lines, sought)
    if start is None:
        return {}
    found = "\n".join(lines[start : start + len(sought)])
    asked = "\n".join(sought)
    return {
        "nearest": {"line": start + 1, "endLine": start + len(sought), "text": found[:_MAX_SHOWN]},
        "difference": _difference(asked[:_MAX_SHOWN], found[:_MAX_SHOWN]),
    }


def _best_start(lines: list[str], sought: list[str]) -> int | None:
    """The first line of the most similar window, found by its most distinctive line within a time budget."""
    offset = max(range(len(sought)), key=lambda number: len(sought[number].strip()))
    telling = sought[offset].strip()
    if not telling:
        return None
    deadline = time.monotonic() + _BUDGET_S
    matcher = TimedMatcher(until=deadline)
    matcher.set_seq2(telling[:400])
    best, best_score = None, 0.5
    for number, line in enumerate(lines):
        if time.monotonic() > deadline:
            break
        matcher.set_seq1(line.strip()[:400])
        if matcher.real_quick_ratio() <= best_score or matcher.quick_ratio() <= best_score:
            continue
        try:
            score = matcher.ratio()
        except TookTooLong:
            break
        if score > best_score and number - offset >= 0:
            best, best_score = number - offset, score
    return best


def _difference(asked: str, found: str) -> list[dict[str, Any]]:
    """Each difference: the requested and the actual text; none where computing it takes too long."""
    pieces: list[dict[str, Any]] = []
    try:
        steps = TimedMatcher(asked, found, until=time.monotonic() + _BUDGET_S).get_opcodes()
    except TookTooLong:
        return []
    for tag, start, end, other, other_end in steps:
        if tag != "equal":
            pieces.append({"at": start, "asked": asked[start:end], "found": found[other:other_end]})
    return pieces[:50]


# Literal edits: replace an exact text, once or everywhere.

MAX_TEXT = 20_000_000
"""The longest result of an edit: a short request with many replacements could otherwise grow without bound."""

_DOCUMENTS = ("PK\x03\x04", "%PDF-")
"""How a package (Word, Excel, OpenDocument) and a PDF begin."""


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
        is_document = text.startswith(_DOCUMENTS)
        details = nearest(readable(text), old) if may_quote and not is_document else {}
        todo = "Compare it with the nearest text." if details else "Read the file again."
        todo = "It is no plain text; document.edit changes documents." if is_document else todo
        raise Conflict(f"`oldText` is not in {shown}. {todo}", path=shown, matches=0, **details)
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
