"""A prompt on a terminal that counts down while it waits, and ends when there is nothing left to answer."""

import sys
import time
from collections.abc import Callable

from computer_linker.cli.output import CliError
from computer_linker.system.terminal import drop_typed, key_by_key, keys

_ERASE = "\r\x1b[K"
_LATE_S = 3


def ask_until(prompt: str, deadline: float, is_over: Callable[[], bool]) -> str | None:
    """Return the line that was typed; None when the deadline (monotonic) passed, or `is_over`, first."""
    typed = ""
    with key_by_key():
        while True:
            left = round(deadline - time.monotonic())
            sys.stderr.write(f"{_ERASE}{prompt} ({max(0, left)} s left): {typed}")
            sys.stderr.flush()
            # The seconds are rounded, so `is_over` tells the end; a little later there is nothing to wait for in any case.
            if left <= -_LATE_S or is_over():
                sys.stderr.write("\n")
                return None
            for key in _typed():
                if key in "\r\n":
                    sys.stderr.write(f"{_ERASE}{prompt}: {typed}\n")
                    return typed.strip().lower()
                typed = typed[:-1] if key in "\x7f\b" else typed + key if key.isprintable() else typed


def settle(seconds: float) -> None:
    """Let a question stand for so long, and drop what is typed meanwhile: it was meant for what stood there before."""
    time.sleep(seconds)
    drop_typed()


def _typed() -> str:
    """What was pressed within a second."""
    found = keys(1.0)
    if found is None:
        raise CliError("The terminal was closed.")
    return found
