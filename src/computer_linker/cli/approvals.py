"""approvals: what waits for your yes, and your answer to it."""

import base64
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from computer_linker.cli.countdown import ask_until, settle
from computer_linker.cli.output import CliError, note, print_json, say
from computer_linker.cli.owner import ask
from computer_linker.model.times import local
from computer_linker.policy.visible_text import folded
from computer_linker.system.terminal import drop_typed

if TYPE_CHECKING:
    from computer_linker.approvals.terminal import Listed, WaitingRequest

AsJson = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]
_STAY_S = 1.0
_CHUNK = 4096
_KEYS = {"m": "same", "s": "shape"}
_PROGRAMS = ("WezTerm", "ghostty")


def register(app: typer.Typer) -> None:
    """Add `approvals`."""
    approvals = typer.Typer(
        help="What waits for your yes: a live list on a terminal, or list, allow and deny.", invoke_without_command=True
    )
    app.add_typer(approvals, name="approvals")
    approvals.callback()(_live)
    approvals.command("list")(_list)


def _live(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Show each request as it comes and ask for an answer; calls wait for you while this runs."""
    if ctx.invoked_subcommand is not None:
        return
    if as_json or not sys.stdin.isatty():
        _list(as_json=as_json)
        return
    # First: from the moment that this is said, calls wait.
    _listed(stays=True)
    note("Waiting for requests. Each is shown with the answers it can get; Enter skips it. Ctrl-C ends.")
    known: list[str] = []
    while True:
        # Read anew for each: an answer may end others too, and the seconds of those that remain have gone on.
        waiting, now = _listed(known=known).waiting, time.monotonic()
        fresh = next((item for item in waiting if item.id not in known), None)
        if fresh is not None:
            _decide(fresh, now + fresh.seconds_left)
        known = [item.id for item in waiting if item.id in known or item is fresh]


def _listed(*, known: list[str] | None = None, stays: bool = False) -> "Listed":
    from computer_linker.approvals.terminal import Listed
    from computer_linker.owner.approvals.list import ListInput, approvals_list

    return ask(approvals_list, ListInput(known=known, stays=stays), Listed)


def _decide(item: "WaitingRequest", deadline: float) -> None:
    from computer_linker.owner.approvals.deny import DenyInput, Refused, approvals_deny

    drop_typed()
    with _staying(item.id) as is_gone:
        key = _page_through(item) or _answer(item, deadline, is_gone)
    if key is None:
        note("It was answered elsewhere, withdrawn, or its time ran out.")
        return
    try:
        match key.split():
            case ["y"]:
                note(_allow(item))
            case [("m" | "s") as extent, *minutes] if _KEYS[extent] in {choice.answer for choice in item.choices}:
                note(_allow(item, _KEYS[extent], *minutes[:1]))
            case ["n"]:
                ask(approvals_deny, DenyInput(asked=item.id), Refused)
                note("Refused.")
            case ["a"]:
                refused = ask(approvals_deny, DenyInput(client=item.client or item.principal), Refused)
                note(f"Refused {refused.requests} of {refused.client}.")
            case _:
                note("Skipped; it still waits.")
    except CliError as error:
        note(error.message)


def _answer(item: "WaitingRequest", deadline: float, is_gone: Callable[[], bool]) -> str | None:
    """Show what each answer covers, and read one."""
    from computer_linker.approvals.request import SETTLE_S

    offered = {key: choice for key, answer in _KEYS.items() for choice in item.choices if choice.answer == answer}
    keys = ["y", *offered, "n", "a"] if item.can_be_allowed else ["n", "a"]
    if item.can_be_allowed:
        say("  y  once: this request, exactly as it is shown")
    for key, choice in offered.items():
        _say_wrapped(f"  {key}  for 60 minutes ({key} 10: for 10, {key} 0: until revoked): {choice.text}")
    say("  n  no")
    say("  a  no, and no to every other request of this client that waits now")
    settle(SETTLE_S)
    return ask_until(f"Allow? [{'/'.join(keys)}]", deadline, is_gone)


def _say_wrapped(text: str) -> None:
    """Print a sentence folded at spaces, each character of it."""
    for line in folded(text, max(shutil.get_terminal_size().columns, 40)):
        say(line)


def _allow(item: "WaitingRequest", extent: str = "", minutes: str = "60") -> str:
    from computer_linker.owner.approvals.allow import Allowed, AllowInput, approvals_allow

    if not minutes.isdecimal():
        raise CliError(f"{minutes!r} is no number of minutes; it still waits.")
    given = AllowInput(
        asked=item.id,
        same=extent == "same",
        shape=extent == "shape",
        minutes=min(int(minutes) or 1, 525_600),
        until_revoked=minutes == "0",
    )
    allowed = ask(approvals_allow, given, Allowed)
    if allowed.standing is None:
        return "Allowed once."
    until = "until it is revoked" if given.until_revoked else f"for {given.minutes} minute{'s' * (given.minutes != 1)}"
    return f"Allowed, and {until}: {allowed.covers}.\nTake it back with: computer-linker approvals revoke {allowed.standing}"


def _page_through(item: "WaitingRequest") -> str | None:
    """Show it a screen at a time; return an answer given before its end, else None. Approval is only offered at the end."""
    size = shutil.get_terminal_size()
    lines = list(_styled(item, size.columns))
    for first in range(0, len(lines), rows := max(size.lines - 2, 5)):
        for line in lines[first : first + rows]:
            say(line)
        if first + rows >= len(lines):
            break
        left = len(lines) - first - rows
        rest = "1 more line" if left == 1 else f"{left} more lines"
        key = _prompt(f"{rest}. Enter shows them, n refuses, k skips, ! answers without them")
        if key in ("n", "k"):
            return key
        if key == "!":
            note(f"You have not seen the rest of it: {rest}.")
            return None
    _draw_picture(item)
    return None


def _prompt(text: str) -> str:
    answer: str = typer.prompt(text, default="", show_default=False)
    return answer.strip().lower()


def _list(as_json: AsJson = False) -> None:
    """What waits for an answer now, and what you allowed beyond one request."""
    listed = _listed()
    if as_json:
        print_json(listed.to_wire())
        return
    for number, item in enumerate(listed.waiting):
        if number:
            say()
        _show(item)
    if not listed.waiting:
        note("Nothing waits for your answer.")
    for one in listed.standing:
        until = "until it is revoked" if one.expires_at is None else f"until {local(one.expires_at)}"
        stands = f"allowed {until}" if one.in_force else "not in force, for the rules of its scope were changed since"
        say(f"{stands}: {one.covers}; by {one.by} ({one.way})")
        say(f"  to end it: computer-linker approvals revoke {one.id}")
    for host in listed.hosts:
        say(f"programs of scope {host.scope} reach {host.host} until {local(host.expires_at)}")
        say(f"  to end it: computer-linker approvals revoke {host.id}")
    for name in listed.clients:
        say(f"the dialog of {name} may approve its own requests")
    for address in listed.push:
        what = "with" if address.content else "without"
        say(f"announced at {address.host} ({address.kind}), {what} what they are; {address.id}")
    for page in listed.pages:
        say(
            f"an approval page is open at {page.address} since {local(page.opened_at)}, last seen {local(page.last_seen_at)}; to "
            f"close it: computer-linker approvals close {page.id}"
        )


def _show(item: "WaitingRequest") -> None:
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 100
    for line in _styled(item, columns):
        say(line)
    for choice in item.choices:
        for line in folded(f"--{choice.answer} would allow {choice.text}", columns - 2):
            say(f"  {line}")
    _draw_picture(item)


def _styled(item: "WaitingRequest", columns: int) -> Iterator[str]:
    from computer_linker.cli.approval_text import format_request

    is_coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    for line, colour in format_request(item, columns):
        styles = {"bold": colour == "bold", "dim": colour == "dim"}
        plain = colour in (None, "bold", "dim")
        yield typer.style(line, fg=None if plain else colour, **styles) if is_coloured and colour else line


def _draw_picture(item: "WaitingRequest") -> None:

    if item.picture and can_draw():
        with suppress(OSError):  # Answered meanwhile, so the picture is gone.
            draw(item.picture)


@contextmanager
def _staying(item_id: str) -> Iterator[Callable[[], bool]]:
    """Remain registered as approver while a request is on the screen, so that other calls wait too instead of being refused.

    Yields whether the request is gone: answered elsewhere, or withdrawn.
    """
    over, gone = threading.Event(), threading.Event()

    def stay() -> None:
        while not over.wait(_STAY_S):
            with suppress(CliError):
                if item_id not in {item.id for item in _listed(stays=True).waiting}:
                    gone.set()

    thread = threading.Thread(target=stay, daemon=True)
    thread.start()
    try:
        yield gone.is_set
    finally:
        over.set()
        thread.join(5)


def can_draw() -> bool:
    """True for a terminal known to draw pictures, without a multiplexer (tmux, screen)."""
    environ = os.environ
    if not sys.stdout.isatty() or "TMUX" in environ or environ.get("TERM", "").startswith(("screen", "tmux", "dumb")):
        return False
    return (
        "KITTY_WINDOW_ID" in environ or environ.get("TERM") == "xterm-kitty" or environ.get("TERM_PROGRAM") in _PROGRAMS
    )


def draw(path: str) -> None:
    """Draw the picture where the cursor is. It is sent in pieces; replies of the terminal are disabled (q=2)."""
    data = base64.standard_b64encode(Path(path).read_bytes())
    pieces = [data[start : start + _CHUNK] for start in range(0, len(data), _CHUNK)] or [b""]
    for number, piece in enumerate(pieces):
        first = b"a=T,f=100,q=2," if number == 0 else b""
        more = b"1" if number + 1 < len(pieces) else b"0"
        sys.stdout.buffer.write(b"\x1b_G" + first + b"m=" + more + b";" + piece + b"\x1b\\")
    sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()
