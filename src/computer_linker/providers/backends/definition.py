"""What one backend is: a program that makes evidence, how its readiness is found, and where it leaves its files."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import anyio

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.processes import Launch
from computer_linker.errors import LinkError
from computer_linker.providers.processes.streams import collect

_MAX_BYTES = 64 * 1024
State = Literal["installed", "ready", "needs_setup", "stale", "unknown", "missing"]
KINDS = ("screenshot", "video_recording", "browser_trace", "browser_verification", "console_logs")
Find = Callable[[str], str | None]
TOUCHPOINTS = ("artifact:write", "fs:read", "preferredBackend", "intakeRoots")
"""The capabilities and policy fields that decide over the files of an external program."""


@dataclass(frozen=True, slots=True)
class Backend:
    """One program that can produce evidence. `state` is `unknown` when its output is not as documented."""

    name: str
    style: str
    available: bool
    state: State
    detail: str
    kinds: Sequence[str] = field(default=())
    health: Literal["healthy", "stale", "unknown"] | None = None
    """The health of its processes, where reported."""
    touchpoints: tuple[str, ...] = TOUCHPOINTS
    """The capabilities and policy fields of a scope that decide over it."""


@dataclass(frozen=True, slots=True)
class ExternalBackend:
    """One external program. Its file in `known/` assigns it to `BACKEND`; nothing else lists it."""

    name: str
    probe: Callable[[Computer, Find], Awaitable[Backend]]
    output_folder: str | None = None
    """Where it leaves its files, `~` allowed; a scope's policy `intakeRoots` can name the backend to take them from there."""
    closed: frozenset[str] = frozenset()
    """Names in that folder that are never opened, such as saved logins."""


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
        out, err, ended = await collect(child, _MAX_BYTES)
        return None if ended.reason is not None else (out + err).decode("utf-8", "replace")
    return None


async def by_version(computer: Computer, find: Find, name: str, kinds: Sequence[str]) -> Backend:
    """A program whose readiness is that it prints a version within five seconds."""
    style = "cli"
    path = find(name)
    if path is None:
        return Backend(name, style, False, "missing", f"{name} is not installed.")
    output = await ask(computer, [path, "--version"], 5)
    version = re.search(r"\d+(?:\.\d+)+", output or "")
    if version is None:
        return Backend(name, style, False, "unknown", "It did not say its version within five seconds.")
    return Backend(name, style, True, "installed", f"version {version.group(0)}", kinds)
