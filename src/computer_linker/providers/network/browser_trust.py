"""Chromium in a sandbox trusts the command's own authority by a managed policy: it reads neither variables nor bundles."""

import json
import os
from pathlib import Path

from computer_linker.computer.facets.processes import StagedText

_SETTINGS = ("/etc/chromium", "/etc/chromium-browser", "/etc/opt/chrome", "/etc/opt/edge", "/etc/brave")
"""Where browsers that are built from Chromium have the settings of the machine."""
_POLICY = "policies/managed/computer-linker.json"
_MAX_FILES, _MAX_BYTES = 100, 1_000_000


def trusting(pem: str) -> tuple[tuple[str, ...], list[StagedText]]:
    """The settings folders that are made anew in the sandbox, and their files: those of the machine, and the authority.

    A folder that does not exist is not made, because nothing is ever written into a folder of the disk.
    """
    text = json.dumps({"CACertificates": ["".join(pem.strip().splitlines()[1:-1])]})
    folders: list[str] = []
    files: list[StagedText] = []
    for folder in _SETTINGS:
        kept = _files_of(folder)
        if kept is not None:
            folders.append(folder)
            files += (*kept, StagedText(f"{folder}/{_POLICY}", text))
    return tuple(folders), files


def _files_of(folder: str) -> list[StagedText] | None:
    """The files of a settings folder; None where there is none, or where it has links, devices, unreadable files or too much."""
    if not Path(folder).is_dir() or Path(folder).is_symlink():
        return None
    try:
        return _read(folder)
    except OSError:
        return None


def _read(folder: str) -> list[StagedText] | None:
    found: list[StagedText] = []
    size = 0
    for place, folders, names in os.walk(folder):
        for path in (Path(place, name) for name in (*folders, *names)):
            if path.is_symlink():
                return None
        for path in (Path(place, name) for name in names):
            size += path.stat().st_size
            if not path.is_file() or len(found) >= _MAX_FILES or size > _MAX_BYTES:
                return None
            found.append(StagedText(str(path), path.read_bytes().decode("latin-1")))
    return found
