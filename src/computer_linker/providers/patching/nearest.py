"""The text nearest to one that was not found, and how they differ, character by character."""

import time
from typing import Any

from computer_linker.changes.timed import TimedMatcher, TookTooLong

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
