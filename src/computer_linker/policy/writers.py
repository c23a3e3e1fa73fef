"""Scopes that can change files, and so the programs in their folders."""

import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from computer_linker.config.defaults import EXECUTES
from computer_linker.model.capability import Capability
from computer_linker.model.scope import Scope
from computer_linker.policy.names import is_protected
from computer_linker.system import is_program_name, os, program_names, slashed


@dataclass(frozen=True, slots=True)
class Writer:
    """A scope with `fs:write`, as far as programs are concerned."""

    scope: str
    roots: tuple[str, ...]
    """Its folders, as configured and resolved."""
    reaches_protected: bool
    """True when it may write protected names, such as `.cargo/bin`."""

    def could_replace(self, path: str, real: str) -> bool:
        """Return True when this scope could replace `path` or its target `real`."""
        return any(
            could_be_replaced(place, root)
            for place in (path, real)
            for root in self.roots
            if self._reaches(place, root)
        )

    def _reaches(self, place: str, root: str) -> bool:
        if not is_below(place, (root,)):
            return False
        return self.reaches_protected or not is_protected(PurePath(place).relative_to(root).parts)


def writers_of(scopes: Iterable[Scope], *, but: str | None = None, protects: bool = True) -> tuple[Writer, ...]:
    """The scopes that can write, without the scope `but`. `protects`: the boundary keeps commands from protected names."""
    return tuple(_writers(scopes, but, protects))


def _writers(scopes: Iterable[Scope], but: str | None, protects: bool) -> Iterator[Writer]:
    for scope in scopes:
        if scope.id == but or Capability.FS_WRITE not in scope.granted:
            continue
        policy = scope.policy
        is_held = policy.sandbox != "off" and protects
        executes = bool(EXECUTES & scope.granted)
        roots = dict.fromkeys(
            place for root in scope.roots for place in (root.rstrip("/") or "/", os.path.realpath(root))
        )
        yield Writer(scope.id, tuple(roots), policy.allow_protected or (executes and not is_held))


def writer_of(path: str, writers: Iterable[Writer]) -> str | None:
    """The id of a scope that could replace the program at this path; None when none could."""
    real = os.path.realpath(path)
    return next((writer.scope for writer in writers if writer.could_replace(path, real)), None)


def could_be_replaced(path: str, root: str) -> bool:
    """True when this user could change the file or any folder between it and the root, and so what runs."""
    place = path
    while True:
        try:
            owner = Path(place).stat().st_uid
        except OSError:
            return True
        if owner == os.geteuid() or os.access(place, os.W_OK):
            return True
        if place in (root, "/") or not is_below(place, (root,)):
            return False
        place = str(Path(place).parent)


def is_below(path: str, places: Iterable[str]) -> bool:
    """True for one of the places, and for everything beneath them."""
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)


# Whether a command could pass a folder of its own to one whose sandbox closes less of it. A closed name is held by a
# mount, in the sandbox that has the mount. A program that gets a folder of another sandbox by a socket can rename
# there what its own sandbox does not hold. So either both sandboxes hold the same names, or they cannot meet.


def could_meet_narrower(scope: Scope, scopes: Iterable[Scope]) -> bool:
    """True when another scope runs programs in a folder of this one, and its sandboxes do not hold all that this one's do."""
    return any(
        _overlap(scope, other) and not _holds_as_much(other, scope)
        for other in scopes
        if other.id != scope.id and EXECUTES & other.granted and other.policy.sandbox != "off"
    )


def _overlap(scope: Scope, other: Scope) -> bool:
    return any(is_below(a, (b,)) or is_below(b, (a,)) for a in scope.roots for b in other.roots)


def _holds_as_much(other: Scope, scope: Scope) -> bool:
    if other.policy.allow_protected and not scope.policy.allow_protected:
        return False
    return all(is_below(root, other.roots) for root in scope.roots)


# Finds programs that the service runs for itself: only files that no scope could have replaced.

SYSTEM_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin", "/opt/homebrew/bin", "/opt/local/bin")
"""Where programs are searched first or only. PATH is used only where a caller passes it: it may contain a workspace."""


def find_program(name: str, first: Sequence[str] = (), writers: Sequence[Writer] = ()) -> str | None:
    """The absolute path of a program in `first` or a system folder that none of the writers could have replaced."""
    folder, base = os.path.split(name)
    folders = (folder,) if folder else dict.fromkeys((*first, *SYSTEM_FOLDERS))
    places = (slashed(place) for place in folders if os.path.isabs(place))
    candidates = (path for place in places for path in program_names(f"{place}/{base}"))
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
        found = os.stat(path)  # every command waits for this
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and os.access(path, os.X_OK) and is_program_name(path)


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
