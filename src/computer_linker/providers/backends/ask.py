"""Asking a program about itself, within a time and a size; one that hangs or rambles is ended with everything it started."""

from pathlib import Path

import anyio

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.processes import Launch
from computer_linker.errors import LinkError
from computer_linker.providers.processes.streams import collect

_MAX_BYTES = 64 * 1024


async def ask(computer: Computer, argv: list[str], deadline_s: float) -> str | None:
    """What the program printed on stdout and stderr; None when it failed to start or did not end in time."""
    if not computer.capabilities().has("processes"):
        return None
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(Path.home()), "LC_ALL": "C.UTF-8"}
    try:
        child = await computer.processes.spawn(Launch(argv=tuple(argv), env=environment))
    except (LinkError, OSError):
        return None
    with anyio.move_on_after(deadline_s):
        child.go()
        out, said, ended = await collect(child, _MAX_BYTES)
        return None if ended.reason is not None else (out + said).decode("utf-8", "replace")
    return None
