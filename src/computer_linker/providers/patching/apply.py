"""Applies hunks to text: exact context, at the stated line or at its only other occurrence.

As with git apply, a hunk without context after its change belongs at the file's end, and one that starts at the first line
without context before it belongs there; else an addition that was applied already would fit a second time.
"""

from collections.abc import Iterable
from dataclasses import replace

from computer_linker.changes.difference import split_lines
from computer_linker.errors import Conflict
from computer_linker.providers.patching.diff import FilePatch, Hunk
from computer_linker.providers.patching.nearest import nearest
from computer_linker.providers.patching.text import readable


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
