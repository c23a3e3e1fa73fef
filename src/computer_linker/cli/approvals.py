"""approvals: what waits for your yes, and your answer to it."""

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any

import typer

from computer_linker.cli.output import CliError, note, print_json, say
from computer_linker.cli.places import control
from computer_linker.extras import remedy

AsJson = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]
Id = Annotated[str, typer.Argument(help="The id the list shows.")]
_STAY_S = 1.0
_KEYS = {"y": "allow", "s": "allow_for_session", "n": "deny"}


def register(app: typer.Typer) -> None:
    """Add `approvals`."""
    approvals = typer.Typer(
        help="What waits for your yes: a live list on a terminal, or list, allow and deny.", invoke_without_command=True
    )
    app.add_typer(approvals, name="approvals")
    approvals.callback()(_live)
    approvals.command("list")(_list)
    approvals.command("allow")(_allow)
    approvals.command("deny")(_deny)
    approvals.command("revoke")(_revoke)
    approvals.command("phone")(_phone)


def _live(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Show each request as it comes and ask for an answer; calls wait for you while this runs."""
    if ctx.invoked_subcommand is not None:
        return
    if as_json or not sys.stdin.isatty():
        _list(as_json=as_json)
        return
    note("Waiting for requests. y allows once, s for this session and scope, n refuses, Enter skips. Ctrl-C ends.")
    known: list[str] = []
    while True:
        waiting = control("approvals.wait", known=known)["waiting"]
        for item in waiting:
            if item["id"] not in known:
                _decide(item)
        known = [item["id"] for item in control("approvals.list")["waiting"]]


def _decide(item: dict[str, Any]) -> None:
    with _staying():
        key = _page_through(item) or _prompt("Allow? [y/s/n]")
    if key not in _KEYS:
        note("Skipped; it still waits.")
        return
    try:
        control("approvals.answer", id=item["id"], answer=_KEYS[key])
        note({"y": "Allowed once.", "s": "Allowed for this session and scope.", "n": "Refused."}[key])
    except CliError as error:
        note(error.message)


def _page_through(item: dict[str, Any]) -> str | None:
    """Show it a screen at a time; an answer that came before its end, else None. A yes is not offered before that."""
    size = shutil.get_terminal_size()
    lines = list(_styled(item, size.columns))
    for first in range(0, len(lines), rows := max(size.lines - 2, 5)):
        for line in lines[first : first + rows]:
            say(line)
        if first + rows >= len(lines):
            break
        left = len(lines) - first - rows
        key = _prompt(f"{left} more lines. Enter shows them, n refuses, k skips, ! answers without reading them")
        if key in ("n", "k"):
            return key
        if key == "!":
            note(f"You have not seen {left} lines of it.")
            return None
    _draw_picture(item)
    return None


def _prompt(text: str) -> str:
    answer: str = typer.prompt(text, default="", show_default=False)
    return answer.strip().lower()


def _list(as_json: AsJson = False) -> None:
    """What waits for an answer now."""
    answer = control("approvals.list")
    if as_json:
        print_json(answer)
        return
    for number, item in enumerate(answer["waiting"]):
        if number:
            say()
        _show(item)
    if not answer["waiting"]:
        note("Nothing waits for your answer.")


def _allow(
    asked: Id,
    session: Annotated[
        bool, typer.Option("--session", help="For this client's session and scope, not only once.")
    ] = False,
) -> None:
    """Say yes to one request, exactly as it is shown."""
    answer = control("approvals.answer", id=asked, answer="allow_for_session" if session else "allow")
    say(f"Allowed {answer['op']} in {answer['scope']}{' for this session' if session else ' once'}.")


def _deny(asked: Id) -> None:
    """Say no to one request."""
    answer = control("approvals.answer", id=asked, answer="deny")
    say(f"Refused {answer['op']} in {answer['scope']}.")


def _revoke() -> None:
    """Take back every yes that was given for a session."""
    say(f"Took back {control('approvals.revoke')['revoked']}.")


def _phone(as_json: AsJson = False) -> None:
    """Make a link that opens the approval page once, for a phone on the same network."""
    answer = control("approvals.link")
    if as_json:
        print_json(answer)
        return
    _draw(answer["url"])
    say(answer["url"])
    note(f"It opens once, within {answer['expiresInSeconds'] // 60} minutes. Whoever opens it can answer for you.")
    if answer["onlyHere"]:
        note("Only this machine reaches that address. For a phone: computer-linker serve --host 0.0.0.0")


def _draw(url: str) -> None:
    """The link as a picture that a phone's camera reads, where the terminal and an optional package allow it."""
    try:
        import segno
    except ImportError:
        note(f"There is no picture to scan without another package. {remedy('phone')}")
        return
    if sys.stdout.isatty():
        segno.make_qr(url, error="m").terminal(out=sys.stdout, compact=True)


def _show(item: dict[str, Any]) -> None:
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 100
    for line in _styled(item, columns):
        say(line)
    _draw_picture(item)


def _styled(item: dict[str, Any], columns: int) -> Iterator[str]:
    from computer_linker.cli.approval_text import shown_lines

    is_coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    for line, colour in shown_lines(item, columns):
        styles = {"bold": colour == "bold", "dim": colour == "dim"}
        plain = colour in (None, "bold", "dim")
        yield typer.style(line, fg=None if plain else colour, **styles) if is_coloured and colour else line


def _draw_picture(item: dict[str, Any]) -> None:
    from computer_linker.cli.terminal_picture import can_draw, draw

    if item["picture"] and can_draw():
        with suppress(OSError):  # Answered meanwhile, so the picture is gone.
            draw(item["picture"])


@contextmanager
def _staying() -> Iterator[None]:
    """Stay an approver while a question is on the screen: other calls wait too instead of being refused."""
    over = threading.Event()

    def stay() -> None:
        while not over.wait(_STAY_S):
            with suppress(CliError):
                control("approvals.here")

    thread = threading.Thread(target=stay, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(5)
