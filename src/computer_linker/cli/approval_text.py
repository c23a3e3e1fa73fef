"""Formats a waiting request for a terminal of any width: first what it would change, then its exact bytes."""

from collections.abc import Iterator

from computer_linker.approvals.terminal import WaitingRequest
from computer_linker.policy.visible_text import folded, mark_of

_MARKS = {"+": "green", "-": "red", "@": "cyan", "=": "bold"}
_LEAST = 30


def format_request(item: WaitingRequest, columns: int, *, counts: bool = False) -> Iterator[tuple[str, str | None]]:
    """Each line with its colour, none wider than the terminal. With `counts` the seconds that are left are shown elsewhere."""
    width = max(_LEAST, columns) - 2
    yield f"{item.op} in {item.scope}", "bold"
    left = "" if counts else f"{item.seconds_left} s left; "
    yield from _indented(f"asked by {item.asker}; {left}{item.id}", width, None)
    for line in item.details:
        yield from _indented(line, width, _MARKS.get(mark_of(item.op, line)))
    if item.picture:
        yield from _indented(f"picture of the place: {item.picture}", width, None)
    request, _, digest = item.preview.rpartition("\n")
    if item.details:
        yield "  the exact request:", None
    yield from _indented(request, width, None)
    yield from _indented(digest, width, "dim")


def _indented(text: str, width: int, colour: str | None) -> Iterator[tuple[str, str | None]]:
    yield from ((f"  {line}", colour) for line in folded(text, width))
