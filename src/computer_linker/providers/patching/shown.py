"""A change to a file as a person reads it: the lines that go and come, every byte visible, nothing left out in silence."""

import time
from hashlib import sha256

from computer_linker.policy.preview import escaped
from computer_linker.providers.patching.apply import split_lines

MAX_BYTES = 200_000
_MAX_LINES = 5000
_HEAD, _TAIL = 60, 20
_WIDTH = 400
_BUDGET_S = 1.0


def shown_change(name: str, before: bytes | None, after: bytes | None, *, until: float | None = None) -> list[str]:
    """What becomes of a file; None is a file that is not there. After `until` it is told by its digest alone."""
    head = f"{escaped(name)}: {_size(before)} now, {_size(after)} then"
    old, new = _text(before), _text(after)
    if old is None or new is None:
        return [head, f"  was {_digest(before)}", f"  becomes {_digest(after)}"]
    old_lines, new_lines = split_lines(old), split_lines(new)
    if len(old_lines) > _MAX_LINES or len(new_lines) > _MAX_LINES:
        return [head, f"  too many lines to compare; becomes {_digest(after)}"]
    lines = _difference(old_lines, new_lines, time.monotonic() + _BUDGET_S if until is None else until)
    if lines is None:
        return [head, f"  too different to compare in time; becomes {_digest(after)}"]
    return [head, *_bounded([_line(line) for line in lines])]


def _difference(old: list[str], new: list[str], until: float) -> list[str] | None:
    """The lines that go and come with two around them; None when finding them takes too long."""
    # Late: the service starts without it.
    from computer_linker.providers.patching.timed import TimedMatcher, TookTooLong

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
    """Lines as a difference names them: from one, and the line before where there are none."""
    count = end - start
    return f"{start + 1}" if count == 1 else f"{start + 1 if count else start},{count}"


def _line(line: str) -> str:
    """One line of the difference; the end of a line shows only where it is not a plain one."""
    text = escaped(line.removesuffix("\n"))
    if len(text) > _WIDTH:
        text = f"{text[:_WIDTH]} … {len(text) - _WIDTH} more characters"
    return text if line.endswith("\n") or line.startswith("@@") else f"{text} (no line end)"


def _bounded(lines: list[str]) -> list[str]:
    if len(lines) <= _HEAD + _TAIL:
        return lines
    left_out = len(lines) - _HEAD - _TAIL
    return [*lines[:_HEAD], f"… {left_out} lines of the difference not shown …", *lines[-_TAIL:]]


def _text(data: bytes | None) -> str | None:
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
