"""watch: a full-screen view of what clients do."""

import sys
from collections.abc import Iterable
from typing import Any

import typer

from computer_linker.cli.output import CliError
from computer_linker.cli.places import state_home


def register(app: typer.Typer) -> None:
    """Add `watch`."""
    app.command()(watch)


def watch() -> None:
    """Watch what clients do as it happens, and answer, stop, undo or pause by a key."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CliError("watch fills a terminal, and this is none", "computer-linker history --follow goes on by lines")
    from computer_linker.config.load import load
    from computer_linker.watch.app import WatchApp

    home = state_home()
    # First, so that a config that is missing or damaged is a line on the terminal.
    load(home)
    WatchApp(home, _lines).run()


def _lines(listed: dict[str, Any], width: int) -> Iterable[tuple[str, str | None]]:
    from computer_linker.approvals.terminal import WaitingRequest
    from computer_linker.cli.approval_text import format_request

    return format_request(WaitingRequest.from_wire(listed), width, counts=True)
