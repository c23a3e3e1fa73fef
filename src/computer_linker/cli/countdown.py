"""A prompt on a terminal that counts down while it waits, and ends when there is nothing left to answer."""

import contextlib
import os
import select
import sys
import time
from collections.abc import Callable, Iterator

from computer_linker.cli.output import CliError

_ERASE = "\r\x1b[K"
_LATE_S = 3


def ask_until(prompt: str, deadline: float, is_over: Callable[[], bool]) -> str | None:
    """Return the line that was typed; None when the deadline (monotonic) passed, or `is_over`, first."""
    typed = ""
    with _key_by_key():
        while True:
            left = round(deadline - time.monotonic())
            sys.stderr.write(f"{_ERASE}{prompt} ({max(0, left)} s left): {typed}")
            sys.stderr.flush()
            # The seconds are rounded, so `is_over` tells the end; a little later there is nothing to wait for in any case.
            if left <= -_LATE_S or is_over():
                sys.stderr.write("\n")
                return None
            for key in _keys():
                if key in "\r\n":
                    sys.stderr.write(f"{_ERASE}{prompt}: {typed}\n")
                    return typed.strip().lower()
                typed = typed[:-1] if key in "\x7f\b" else typed + key if key.isprintable() else typed


def settle(seconds: float) -> None:
    """Let a question stand for so long, and drop what is typed meanwhile: it was meant for what stood there before."""
    time.sleep(seconds)
    drop_typed()


def drop_typed() -> None:
    """Drop what was typed so far: it was meant for an earlier question."""
    import termios

    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


@contextlib.contextmanager
def _key_by_key() -> Iterator[None]:
    """Read each key as it is pressed; Ctrl-C still ends the program."""
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin.fileno())
    # Not TCSAFLUSH, the default: it would drop what was typed before.
    tty.setcbreak(sys.stdin.fileno(), termios.TCSANOW)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)


def _keys() -> str:
    """What was pressed within a second."""
    ready, _, _ = select.select([sys.stdin.fileno()], [], [], 1.0)
    if not ready:
        return ""
    data = os.read(sys.stdin.fileno(), 256)
    if not data:
        raise CliError("The terminal was closed.")
    return data.decode("utf-8", "replace")
