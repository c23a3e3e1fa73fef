"""A command on a real terminal of a given width."""

import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path


def on_terminal(home: Path, words: list[str], columns: int, answer: str = "", **given: str) -> str:
    """What a command writes to a real terminal of that many columns, where a question got this answer."""
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    program = [sys.executable, "-m", "computer_linker", *words]
    environment |= {"COMPUTER_LINKER_HOME": str(home), "TERM": "xterm", **given}
    shown = b""
    try:
        with subprocess.Popen(program, env=environment, stdin=follower, stdout=follower, stderr=follower) as child:
            os.close(follower)
            os.write(leader, f"{answer}\n".encode() if answer else b"")
            with contextlib.suppress(OSError):  # Linux ends a terminal without a program by EIO
                while data := os.read(leader, 65536):
                    shown += data
            assert child.wait(timeout=240) == (1 if answer == "n" else 0), shown
    finally:
        os.close(leader)
    return shown.decode()
