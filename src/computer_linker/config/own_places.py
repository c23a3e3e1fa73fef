"""Folders that no scope may change, whatever they are called: the service's own programs, its search path, its user's tools."""

import os
import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=4)
def search_path(path: str) -> tuple[str, ...]:
    """The folders of this PATH, as written and without links, but for those of a project's own virtual environment or modules."""
    folders = (folder.rstrip("/") for folder in path.split(os.pathsep) if folder.startswith("/"))
    return _both_ways(folder for folder in folders if folder and not _is_of_a_project(folder))


@lru_cache(maxsize=1)
def own_programs() -> tuple[str, ...]:
    """Where the service's own code lies: its virtual environment, when it has one, and this package."""
    package = str(Path(__file__).parent.parent)
    return _both_ways([*([sys.prefix] if sys.prefix != sys.base_prefix else []), package])


@lru_cache(maxsize=4)
def user_home(home: str) -> tuple[str, ...]:
    """The home of the service's user, as written and without links."""
    return _both_ways([home.rstrip("/")]) if home.startswith("/") and home.rstrip("/") else ()


def _both_ways(folders: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(place for folder in folders for place in (folder, os.path.realpath(folder))))


def _is_of_a_project(folder: str) -> bool:
    # Installing there is a project's everyday work; a command of another scope does not look for programs in it.
    # By os.access: asking Path of a folder that this user may not enter raises.
    return folder.endswith("/node_modules/.bin") or os.access(Path(folder).parent / "pyvenv.cfg", os.F_OK)
