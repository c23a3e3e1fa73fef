"""How a program the service itself knows (an agent) is confined: one working folder, and a place of its own."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from computer_linker.computer.facets.files import Files
from computer_linker.model.paths import RootedPath
from computer_linker.policy.paths import check_name
from computer_linker.providers.sandbox.boundary import Confinement, Folder


@dataclass(frozen=True, slots=True)
class Keeping:
    """What such a program may touch beside what a command of the scope may read."""

    writes: bool
    """Whether the working folder may be written; everything else of the scope is read-only to it."""
    network: bool
    own: tuple[str, ...] = ()
    """Absolute folders the program keeps for itself."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables the service gives it, beside those a caller may set."""
    nests: bool = False
    """It makes a sandbox of its own."""
    through: tuple[str, ...] = ()
    """A program of the service that starts the judged command, which follows as its arguments."""


def kept_to(
    keeping: Keeping, place: Confinement, cwd: RootedPath, others: tuple[Folder, ...], files: Files, held: list[int]
) -> Confinement:
    """The confinement: the working folder as writable as asked, the other folders to read, and its own places."""
    working = _working_folder(keeping, place.cwd, cwd, files, held)
    return replace(
        place,
        writable=(working,) if keeping.writes else (),
        readable=others if keeping.writes else (*others, working),
        own=own_folders(keeping, held),
        nests=keeping.nests,
    )


def own_folders(keeping: Keeping, held: list[int]) -> tuple[Folder, ...]:
    """The folders the program keeps for itself, held."""
    return tuple(Folder(_opened(path, held), path) for path in keeping.own)


def _working_folder(keeping: Keeping, where: str, cwd: RootedPath, files: Files, held: list[int]) -> Folder:
    # Links on the way are resolved, so the rules are asked about the place it really is.
    top = os.path.realpath(cwd.root)
    above = Path(where).relative_to(top).parts if Path(where).is_relative_to(top) else cwd.parts
    check_name(replace(cwd, parts=above), for_writing=keeping.writes)
    fd = files.open_folder(cwd)
    held.append(fd)
    return Folder(fd, where, cwd.rules, alias=_alias(cwd, where), above=above)


def _alias(cwd: RootedPath, where: str) -> str:
    """The root's configured path, where it has links in it and the working folder is that root."""
    written = cwd.root.rstrip("/")
    return written if not cwd.parts and written not in (where, "") else ""


def _opened(path: str, held: list[int]) -> int:
    fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    held.append(fd)
    return fd
