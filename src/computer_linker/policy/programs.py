"""Finds programs that the service runs for itself: only files that no scope could have replaced."""

import os
import stat
from collections.abc import Sequence

from computer_linker.policy.writers import Writer, writer_of

SYSTEM_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin", "/opt/homebrew/bin", "/opt/local/bin")
"""Where programs are searched first or only. PATH is used only where a caller passes it: it may contain a workspace."""


def find_program(name: str, first: Sequence[str] = (), writers: Sequence[Writer] = ()) -> str | None:
    """The absolute path of a program in `first` or a system folder that none of the writers could have replaced."""
    folder, base = os.path.split(name)
    folders = (folder,) if folder else dict.fromkeys((*first, *SYSTEM_FOLDERS))
    names = (base, f"{base}.exe") if os.name == "nt" else (base,)
    candidates = (f"{place}/{one}" for place in folders if os.path.isabs(place) for one in names)  # noqa: PTH117
    return next((path for path in candidates if is_program(path) and planter_of(path, writers, first) is None), None)


def planter_of(path: str, writers: Sequence[Writer], search_path: Sequence[str] = ()) -> str | None:
    """The id of a scope that could have replaced the program, or the interpreter that its first line names."""
    if not writers:
        return None
    found = writer_of(path, writers)
    if found is not None or (interpreter := interpreter_of(path)) is None:
        return found
    if "/" not in interpreter:
        places = (f"{folder}/{interpreter}" for folder in (*search_path, *SYSTEM_FOLDERS))
        interpreter = next((place for place in places if is_program(place)), "")
    return writer_of(interpreter, writers) if interpreter else None


def is_program(path: str) -> bool:
    """True for a regular file that this user may execute."""
    try:
        found = os.stat(path)  # noqa: PTH116  # every command waits for this
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and os.access(path, os.X_OK)


def interpreter_of(path: str) -> str | None:
    """The program in a script's first line: a path, or the name that `env` would look up; None for other files."""
    try:
        with open(path, "rb") as file:  # every command waits for this
            line = file.read(256).partition(b"\n")[0]
    except OSError:
        return None
    words = os.fsdecode(line[2:]).split() if line.startswith(b"#!") else []
    if not words or words[0].rpartition("/")[2] != "env":
        return words[0] if words else None
    return next((word for word in words[1:] if not word.startswith("-") and "=" not in word), None)
