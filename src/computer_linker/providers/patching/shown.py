"""A change to a file as a person reads it: the lines that go and come, every byte visible, nothing left out in silence."""

from hashlib import sha256

from computer_linker.policy.preview import escaped
from computer_linker.providers.patching.apply import split_lines

MAX_BYTES = 200_000
_MAX_LINES = 5000
_HEAD, _TAIL = 60, 20
_WIDTH = 400


def shown_change(name: str, before: bytes | None, after: bytes | None) -> list[str]:
    """What becomes of a file; None is a file that is not there."""
    head = f"{escaped(name)}: {_size(before)} now, {_size(after)} then"
    old, new = _text(before), _text(after)
    if old is None or new is None:
        return [head, f"  was {_digest(before)}", f"  becomes {_digest(after)}"]
    # Late: the service starts without it.
    import difflib

    old_lines, new_lines = split_lines(old), split_lines(new)
    if len(old_lines) > _MAX_LINES or len(new_lines) > _MAX_LINES:
        return [head, f"  too many lines to compare; becomes {_digest(after)}"]
    lines = list(difflib.unified_diff(old_lines, new_lines, n=2))[2:]
    return [head, *_bounded([_line(line) for line in lines])]


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
