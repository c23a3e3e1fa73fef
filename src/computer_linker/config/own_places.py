"""Folders that no scope may change, whatever they are called: the service's own programs, its search path, its user's tools."""

import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from computer_linker.system import os


@lru_cache(maxsize=4)
def search_path(path: str) -> tuple[str, ...]:
    """The folders of this PATH, as written and resolved, without those of a project's own virtual environment or modules."""
    folders = (folder.rstrip("/") for folder in path.split(os.pathsep) if folder.startswith("/"))
    return _with_resolved(folder for folder in folders if folder and not _is_of_a_project(folder))


@lru_cache(maxsize=1)
def own_programs() -> tuple[str, ...]:
    """Where the service's own code lies: its virtual environment, when it has one, and this package."""
    package = str(Path(__file__).parent.parent)
    return _with_resolved([*([sys.prefix] if sys.prefix != sys.base_prefix else []), package])


@lru_cache(maxsize=1)
def process_folders() -> tuple[str, ...]:
    """Where this system shows its processes as files (procfs): environments, memory and open files, of the service too."""
    try:
        lines = Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return ()
    mounts = (line.split(" - ")[0].split() for line in lines if " - proc " in line)
    return tuple(dict.fromkeys(fields[4] for fields in mounts if len(fields) > 4))


@lru_cache(maxsize=4)
def user_home(home: str) -> tuple[str, ...]:
    """The home of the service's user, as written and resolved."""
    return _with_resolved([home.rstrip("/")]) if home.startswith("/") and home.rstrip("/") else ()


def _with_resolved(folders: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(place for folder in folders for place in (folder, os.path.realpath(folder))))


def _is_of_a_project(folder: str) -> bool:
    # Installing there is a project's everyday work; a command of another scope does not look for programs in it.
    # By os.access: Path methods raise for a folder that this user may not enter.
    return folder.endswith("/node_modules/.bin") or os.access(Path(folder).parent / "pyvenv.cfg", os.F_OK)
