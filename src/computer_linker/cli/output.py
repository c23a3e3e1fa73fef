"""Output of commands: data on stdout, all else on stderr, readable without colour, one line and a hint for an error."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class CliError(Exception):
    """A command cannot go on: one line, and what would help."""

    def __init__(self, message: str, hint: str = "", exit_code: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code


def print_json(value: Any) -> None:
    """Print the whole answer as JSON, for scripts."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def say(text: str = "") -> None:
    """Print a line of the answer."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """Print a line about the progress of the command; not part of the answer."""
    sys.stderr.write(text + "\n")


def visible(text: str) -> str:
    """Lines that may hold foreign text, such as a file's name: control characters but line ends and tabs are escaped."""
    from computer_linker.policy.visible_text import escaped

    return re.sub(r"[^\n\t]+", lambda part: escaped(part[0]), text)


def fail(message: str, hint: str = "", problems: Sequence[str] = ()) -> None:
    """Print the error on one line, or each of its problems, then the hint.

    The text may be foreign, so control characters are escaped.
    """
    from computer_linker.policy.visible_text import escaped

    for sentence in problems or [message]:
        sys.stderr.write(f"error: {escaped(' '.join(sentence.split()))}\n")
    if hint:
        sys.stderr.write(f"hint: {escaped(' '.join(hint.split()))}\n")


@contextmanager
def progress() -> Iterator[Callable[[str, float | None, float | None], None] | None]:
    """Show a progress line on a terminal, overwritten as work proceeds and cleared at the end."""
    if not sys.stderr.isatty():
        yield None
        return
    is_used = False

    def report(message: str, current: float | None, total: float | None) -> None:
        nonlocal is_used
        is_used = True
        part = f" {current / total:.0%}" if current is not None and total else ""
        if message == "bytes" and current is not None:
            message = f"{current / 1e6:.0f} MB" + (f" of {total / 1e6:.0f} MB" if total else "")
        sys.stderr.write(f"\r\x1b[K{message}{part}")
        sys.stderr.flush()

    try:
        yield report
    finally:
        if is_used:
            sys.stderr.write("\r\x1b[K")


def table(rows: Sequence[Sequence[str]], headers: Sequence[str] = ()) -> None:
    """Aligned columns. On a terminal long cells fold to its width; in a pipe nothing is ever cut.

    A cell may hold foreign text, such as a client's name: control characters and line ends are escaped.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, show_header=bool(headers), pad_edge=False, padding=(0, 2, 0, 0))
    for index in range(max((len(row) for row in rows), default=len(headers))):
        shown.add_column(headers[index] if headers else "", overflow="fold")
    for row in rows:
        shown.add_row(*(_styled(cell, Text) for cell in row))
    wide = None if sys.stdout.isatty() else 10_000
    console = Console(file=sys.stdout, width=wide, highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        console.print(shown)
    sys.stdout.write("\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n")


_STYLES = {"ready": "green", "ok": "green", "error": "red", "blocked": "red", "warning": "yellow", "missing": "yellow"}


def _styled(cell: str, text: Any) -> Any:
    from computer_linker.policy.visible_text import escaped

    return text(escaped(cell), style=_STYLES.get(cell, ""))
