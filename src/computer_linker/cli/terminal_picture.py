"""A PNG drawn in the terminal itself, where the terminal says that it knows the kitty graphics protocol."""

import base64
import os
import sys
from pathlib import Path

_CHUNK = 4096
_PROGRAMS = ("WezTerm", "ghostty")


def can_draw() -> bool:
    """True for a terminal known to draw pictures, with nothing (tmux, screen) in between."""
    environ = os.environ
    if not sys.stdout.isatty() or "TMUX" in environ or environ.get("TERM", "").startswith(("screen", "tmux", "dumb")):
        return False
    return (
        "KITTY_WINDOW_ID" in environ or environ.get("TERM") == "xterm-kitty" or environ.get("TERM_PROGRAM") in _PROGRAMS
    )


def draw(path: str) -> None:
    """Draw the picture where the cursor is. It is sent in pieces; answers of the terminal are switched off (q=2)."""
    data = base64.standard_b64encode(Path(path).read_bytes())
    pieces = [data[start : start + _CHUNK] for start in range(0, len(data), _CHUNK)] or [b""]
    for number, piece in enumerate(pieces):
        first = b"a=T,f=100,q=2," if number == 0 else b""
        more = b"1" if number + 1 < len(pieces) else b"0"
        sys.stdout.buffer.write(b"\x1b_G" + first + b"m=" + more + b";" + piece + b"\x1b\\")
    sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()
