"""Keys of the terminal that a person types at, one by one."""

import contextlib
import sys
import time
from collections.abc import Iterator

from computer_linker.system import os

_LOOK_S = 0.02

if sys.platform == "win32":
    from computer_linker.system.windows.nt import crt

    def drop_typed() -> None:
        """Drop what was typed so far."""
        while crt().kbhit():
            crt().getwch()

    @contextlib.contextmanager
    def key_by_key() -> Iterator[None]:
        """Read each key as it is pressed: the console does that without further ado."""
        yield

    def keys(within_s: float) -> str | None:
        """What was pressed within this time, empty when nothing was. Ctrl-C raises KeyboardInterrupt."""
        deadline = time.monotonic() + within_s
        while not crt().kbhit():
            if time.monotonic() >= deadline:
                return ""
            time.sleep(_LOOK_S)
        return _pressed()

    def _pressed() -> str:
        found: str = crt().getwch()
        if found == "\x03":
            raise KeyboardInterrupt
        if found in "\x00\xe0":
            # An arrow or function key has a second code.
            crt().getwch()
            return ""
        return found

else:

    def drop_typed() -> None:
        """Drop what was typed so far."""
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    @contextlib.contextmanager
    def key_by_key() -> Iterator[None]:
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

    def keys(within_s: float) -> str | None:
        """What was pressed within this time, empty when nothing was; None when the terminal was closed."""
        import select

        ready, _, _ = select.select([sys.stdin.fileno()], [], [], within_s)
        if not ready:
            return ""
        return os.read(sys.stdin.fileno(), 256).decode("utf-8", "replace") or None
