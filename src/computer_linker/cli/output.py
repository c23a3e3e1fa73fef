"""How commands speak: data on stdout, all else on stderr, plain without colour, one line and a hint for an error."""

import json
import sys
from collections.abc import Sequence
from typing import Any


class CliError(Exception):
    """A command cannot go on: one line, and what would help."""

    def __init__(self, message: str, hint: str = "", exit_code: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code


def print_json(value: Any) -> None:
    """The whole answer as JSON, for scripts."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def say(text: str = "") -> None:
    """A line of the answer."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """A line about what is happening; not part of the answer."""
    sys.stderr.write(text + "\n")


def fail(message: str, hint: str = "") -> None:
    """The error on one line, the hint on its own. Another computer may have worded it, so nothing in it moves the cursor."""
    from computer_linker.policy.preview import escaped

    sys.stderr.write(f"error: {escaped(' '.join(message.split()))}\n")
    if hint:
        sys.stderr.write(f"hint: {escaped(' '.join(hint.split()))}\n")


def table(rows: Sequence[Sequence[str]], headers: Sequence[str] = ()) -> None:
    """Aligned columns. On a terminal long cells fold to its width; in a pipe nothing is ever cut.

    Others may have worded a cell, such as a client's name: nothing in it moves the cursor or makes a line of its own.
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
    from computer_linker.policy.preview import escaped

    return text(escaped(cell), style=_STYLES.get(cell, ""))
