"""Formats a waiting request for a terminal of any width: first what it would change, then its exact bytes."""

from collections.abc import Iterator
from unicodedata import combining, east_asian_width

from computer_linker.approvals.terminal import WaitingRequest

_MARKS = {"+": "green", "-": "red", "@": "cyan"}
_LEAST = 30


def format_request(item: WaitingRequest, columns: int, *, counts: bool = False) -> Iterator[tuple[str, str | None]]:
    """Each line with its colour, none wider than the terminal. With `counts` the seconds that are left are shown elsewhere."""
    width = max(_LEAST, columns) - 2
    yield f"{item.op} in {item.scope}", "bold"
    left = "" if counts else f"{item.seconds_left} s left; "
    yield from _indented(f"asked by {item.asker}; {left}{item.id}", width, None)
    for line in item.details:
        yield from _indented(line, width, _MARKS.get(line[:1]))
    if item.picture:
        yield from _indented(f"picture of the place: {item.picture}", width, None)
    *request, digest = item.preview.split("\n")
    if item.details:
        yield "  the exact request:", None
    yield from _indented("".join(request), width, None)
    yield from _indented(digest, width, "dim")


def _indented(text: str, width: int, colour: str | None) -> Iterator[tuple[str, str | None]]:
    """Wrap by width, never at spaces: a person must see each character in its place."""
    if text.isascii():
        # Fast path: ASCII is one cell per character.
        yield from ((f"  {text[at : at + width]}", colour) for at in range(0, max(len(text), 1), width))
        return
    line, room = "  ", width
    for char in text:
        cells = 2 if east_asian_width(char) in "WF" else 0 if combining(char) else 1
        if cells > room:
            yield line, colour
            line, room = "  ", width
        line, room = line + char, room - cells
    yield line, colour
