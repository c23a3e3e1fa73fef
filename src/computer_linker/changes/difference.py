"""A file change as a readable diff: removed and added lines, every byte visible, nothing omitted silently."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from hashlib import sha256
from typing import Any, Self

from computer_linker.policy.visible_text import escaped

MAX_BYTES = 200_000
MAX_LINES = 5000
MAX_SHOWN = 300_000
"""Characters of all differences of one request; what comes after is shown by its digests."""
_HEAD, _TAIL = 60, 20
_WIDTH = 400
_BUDGET_S = 1.0


def diff_lines(
    name: str, before: bytes | None, after: bytes | None, *, until: float | None = None, is_whole: bool = False
) -> list[str]:
    """Show the change of a file; None is an absent file. After `until` only its digest is shown.

    Long differences are cut in the middle, and long lines at the end, where the request shows all of it; else it `is_whole`.
    """
    head = f"{escaped(name)}: {_size(before)} now, {_size(after)} then"
    old, new = as_text(before), as_text(after)
    if old is None or new is None:
        return [head, f"  was {_digest(before)}", f"  becomes {_digest(after)}"]
    old_lines, new_lines = split_lines(old), split_lines(new)
    if len(old_lines) > MAX_LINES or len(new_lines) > MAX_LINES:
        return [head, f"  too many lines to compare; becomes {_digest(after)}"]
    lines = _difference(old_lines, new_lines, time.monotonic() + _BUDGET_S if until is None else until)
    if lines is None:
        return [head, f"  too different to compare in time; becomes {_digest(after)}"]
    if is_whole:
        return [head, *(_line(line, MAX_BYTES) for line in lines)]
    return [head, *_bounded([_line(line) for line in lines])]


@dataclass(frozen=True, slots=True)
class State:
    """What is known of a file's content that is not shown."""

    size: int
    sha256: str | None
    """None for one that is too large to be digested here."""

    @classmethod
    def of(cls, content: bytes) -> Self:
        return cls(len(content), sha256(content).hexdigest())

    @property
    def digest(self) -> str:
        return "too large for a digest here" if self.sha256 is None else f"sha256 {self.sha256}"


def digests(name: str, before: State | None, after: State | None) -> list[str]:
    """The change of a file that is not shown as text; None is an absent file."""
    was, then = ("not there" if state is None else f"{state.size} bytes" for state in (before, after))
    old, new = ("not there" if state is None else state.digest for state in (before, after))
    return [f"{escaped(name)}: {was} now, {then} then; it cannot be read here", f"  was {old}", f"  becomes {new}"]


def unified(name: str, before: bytes | None, after: bytes | None, until: float) -> list[str] | None:
    """The change of a text file as a unified diff; None for one that is no text, or takes too long to compare."""
    old, new = as_text(before), as_text(after)
    if old is None or new is None:
        return None
    lines = _difference(split_lines(old), split_lines(new), until)
    if lines is None:
        return None
    head = ("/dev/null" if before is None else f"a/{name}", "/dev/null" if after is None else f"b/{name}")
    body = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return [f"--- {head[0]}\n", f"+++ {head[1]}\n", *body]


def split_lines(text: str) -> list[str]:
    """Lines with their ends; only a newline ends a line."""
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _difference(old: list[str], new: list[str], until: float) -> list[str] | None:
    """The removed and added lines with two of context; None when the comparison takes too long."""
    # Imported late to keep start-up fast.

    lines: list[str] = []
    try:
        groups = list(TimedMatcher(old, new, until=until, autojunk=True).get_grouped_opcodes(2))
    except TookTooLong:
        return None
    for group in groups:
        (_, start, _, other, _), (_, _, end, _, other_end) = group[0], group[-1]
        lines.append(f"@@ -{_range(start, end)} +{_range(other, other_end)} @@\n")
        for tag, start, end, other, other_end in group:
            if tag == "equal":
                lines += [" " + line for line in old[start:end]]
                continue
            lines += ["-" + line for line in old[start:end]]
            lines += ["+" + line for line in new[other:other_end]]
    return lines


def _range(start: int, end: int) -> str:
    """A line range in unified diff form: counted from one; the line before where it is empty."""
    count = end - start
    return f"{start + 1}" if count == 1 else f"{start + 1 if count else start},{count}"


def _line(line: str, width: int = _WIDTH) -> str:
    """One line of the diff; a line end is shown only where it is not a plain newline."""
    text = escaped(line.removesuffix("\n"))
    if len(text) > width:
        text = f"{text[:width]} … {len(text) - width} more characters"
    return text if line.endswith("\n") or line.startswith("@@") else f"{text} (no line end)"


def _bounded(lines: list[str]) -> list[str]:
    if len(lines) <= _HEAD + _TAIL:
        return lines
    left_out = len(lines) - _HEAD - _TAIL
    return [
        *lines[:_HEAD],
        f"… {left_out} {'line' if left_out == 1 else 'lines'} of the difference not shown …",
        *lines[-_TAIL:],
    ]


def as_text(data: bytes | None) -> str | None:
    """The text of a file; None for what is no text, or too large."""
    if data is None:
        return ""
    if len(data) > MAX_BYTES or b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _size(data: bytes | None) -> str:
    return "not there" if data is None else f"{len(data)} bytes"


def _digest(data: bytes | None) -> str:
    return "not there" if data is None else f"sha256 {sha256(data).hexdigest()}"


# Compares two texts within a time limit: difflib takes minutes over a few kilobytes of adversarial text.


class TookTooLong(Exception):
    """The comparison exceeded its time limit."""


class TimedMatcher(SequenceMatcher[Any]):
    """A SequenceMatcher that checks the clock with every match. Raises TookTooLong."""

    def __init__(
        self, one: Sequence[Any] = "", other: Sequence[Any] = "", *, until: float, autojunk: bool = False
    ) -> None:
        self._until = until
        super().__init__(None, one, other, autojunk)

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Any:
        """Find as difflib does, unless the time is over."""
        if time.monotonic() > self._until:
            raise TookTooLong
        return super().find_longest_match(alo, ahi, blo, bhi)
