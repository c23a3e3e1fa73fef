"""Asking a program about itself, within a time and a size; a program that hangs, forks or rambles is ended with its group."""

import threading
from pathlib import Path

import anyio

from computer_linker.providers.child import Child, Spec

_MAX_BYTES = 64 * 1024


async def ask(argv: list[str], deadline_s: float) -> str | None:
    """What the program printed on stdout and stderr; None when it failed to start or did not end in time."""
    return await anyio.to_thread.run_sync(_ask, argv, deadline_s)


def _ask(argv: list[str], deadline_s: float) -> str | None:
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(Path.home()), "LC_ALL": "C.UTF-8"}
    try:
        child = Child(Spec(argv, "/", environment))
    except OSError:
        return None
    is_late = threading.Event()

    def end() -> None:
        is_late.set()
        child.kill()

    timer = threading.Timer(deadline_s, end)
    timer.start()
    try:
        out, _ = child.read_all(_MAX_BYTES)
        if len(out) >= _MAX_BYTES:
            child.kill()
        _, said = child.finish()
    finally:
        timer.cancel()
        child.close()
    return None if is_late.is_set() else (out + said).decode("utf-8", "replace")
