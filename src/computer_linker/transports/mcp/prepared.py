"""Writes the answers that open a connection to a file, from which the stdio shim answers while a service starts."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pydantic_core import to_json

import computer_linker
from computer_linker.system import os
from computer_linker.transports.mcp.early import FILE_NAME
from computer_linker.transports.mcp.fast_path import FastPath
from computer_linker.transports.mcp.handshake import HANDSHAKE_VERSIONS
from computer_linker.transports.mcp.profiles import PROFILES, UNKNOWN, Profile

_SURFACES = ("default", "split")
"""The surfaces whose lists are short; a client with another one waits for the service."""


def is_current(home: Path) -> bool:
    """True when the file was written by this very source, so that nothing has to be imported to compare it."""
    try:
        return bool(json.loads((home / FILE_NAME).read_bytes())["stamp"] == stamp())
    except (OSError, ValueError, LookupError, TypeError):
        return False


@cache
def stamp() -> str:
    """The newest change and the number of the package's source files, as they were when this process first asked."""
    times = list(_changes(str(Path(computer_linker.__file__).parent)))
    return f"{max(times)}-{len(times)}"


def _changes(folder: str) -> Iterator[int]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _changes(entry.path)
            elif entry.name.endswith(".py"):
                yield entry.stat().st_mtime_ns


def prepared(fast_path: FastPath) -> bytes:
    """The answers by protocol version, surface and what a client's profile changes in them."""
    lists = {
        f"{surface}{_size(profile)}": fast_path.tools.on(surface).listing(profile).decode()
        for surface in _SURFACES
        for profile in (*PROFILES, UNKNOWN)
    }
    rows = [(name, profile.render, _size(profile)) for profile in PROFILES for name in profile.names]
    return to_json(
        {
            "stamp": stamp(),
            "profiles": rows,
            "initialize": {version: fast_path.initialized(version).decode() for version in HANDSHAKE_VERSIONS},
            "discover": fast_path.discovered().decode(),
            "modernTail": fast_path.modern_tail().decode(),
            "lists": lists,
        }
    )


def write_prepared(home: Path, content: bytes, name: str = FILE_NAME) -> None:
    """Write the file when it differs, and remove those of other versions."""
    path = home / name
    for other in home.glob(f"{name.partition('-')[0]}-*.json"):
        if other.name != name:
            other.unlink(missing_ok=True)
    if path.exists() and path.read_bytes() == content:
        return
    fresh = home / f".{name}.{os.getpid()}"
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(content)
    fresh.replace(path)


def _size(profile: Profile) -> str:
    """What the profile adds to a list of tools."""
    return f" {profile.cut}" if profile.declares_size else ""
