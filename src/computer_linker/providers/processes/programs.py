"""Which file a program's name means: found on a trusted search path, never in a place the scope can write."""

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from computer_linker.errors import InvalidRequest, NotFound, PermissionDenied
from computer_linker.policy.commands import Program
from computer_linker.providers.sandbox.places import SYSTEM, home, tool_folders

_ALWAYS = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")


class Programs:
    """Finds programs for one scope. `roots` are the folders the scope could write to."""

    def __init__(self, roots: Sequence[str], environ: Mapping[str, str]) -> None:
        self._roots = tuple(os.path.realpath(root) for root in roots)
        self._configured_roots = tuple(roots)
        self._inside = tuple(f"{root.rstrip('/')}/" for root in {*self._roots, *roots})
        self.search_path = self._trusted(environ.get("PATH", ""))
        self._real_folders = {folder: os.path.realpath(folder) for folder in self.search_path}

    def locate(self, name: str) -> str | None:
        """The absolute file a rule's program means; None when there is none. Used to compare, not to run."""
        if "/" in name:
            place = name if name.startswith("/") else f"{self._configured_roots[0]}/{name}" if self._roots else ""
            return self._normal(place) if place else None
        for folder in self.search_path:
            if _is_program(candidate := f"{folder}/{name}"):
                return self._normal(candidate)
        return None

    def resolve(self, argv0: str, cwd: str) -> Program:
        """The file this argv would execute. Raises NotFound when there is none."""
        if "/" in argv0:
            place = argv0 if argv0.startswith("/") else f"{cwd}/{argv0}"
            found = self._normal(place) if _is_program(place) else None
        else:
            found = self.locate(argv0)
        if found is None:
            raise NotFound(f"There is no program {argv0[:80]!r} here.", program=argv0[:80])
        # Its folder is resolved already, so only the last name can still be a link.
        real = os.path.realpath(found) if os.path.islink(found) else found  # noqa: PTH114  # every command waits for this
        mode = os.stat(real).st_mode  # noqa: PTH116  # every command waits for this
        if mode & (stat.S_ISUID | stat.S_ISGID) and not real.startswith("/usr/"):
            raise PermissionDenied("The program carries rights of another user.", rule="setuid")
        return Program(found, real, self._could_replace(found, real))

    def places(self, program: Program) -> tuple[str, ...]:
        """What must be readable for the program to start: its own file, and its home when it is on the search path."""
        wanted: list[str] = []
        for path in (program.path, program.real):
            folder = os.path.dirname(path)  # noqa: PTH120  # every command waits for this
            if _is_below(path, SYSTEM) or _is_below(path, tool_folders()) or self._is_writable_by_scope(path):
                continue
            wanted.append(_prefix(folder) if folder in self.search_path or wanted else path)
        return tuple(dict.fromkeys(wanted))

    def _trusted(self, path: str) -> tuple[str, ...]:
        folders: list[str] = []
        for folder in (*path.split(os.pathsep), *_ALWAYS):
            if folder.startswith("/") and folder not in folders and not self._is_writable_by_scope(folder):
                folders.append(folder)
        return tuple(folders)

    def _normal(self, path: str) -> str:
        """Absolute, with the folder resolved and the last name kept: a multi-call program is told by its name."""
        folder, name = os.path.split(path)
        if name in ("", ".", ".."):
            raise InvalidRequest("The program's name is a folder.")
        real = self._real_folders.get(folder) or os.path.realpath(folder)
        return f"{real.rstrip('/')}/{name}"

    def _is_writable_by_scope(self, path: str) -> bool:
        return self._could_replace(path, os.path.realpath(path))

    def _could_replace(self, path: str, real: str) -> bool:
        """True when the scope could change what this path, whose links lead to `real`, means."""
        if not f"{path}/".startswith(self._inside) and not f"{real}/".startswith(self._inside):
            return False
        roots = [root for root in self._roots if _is_below(real, (root,))]
        roots += [root for root in self._configured_roots if _is_below(path, (root,)) or _is_below(real, (root,))]
        return any(_could_be_replaced(place, root) for root in roots for place in (path, real))


def _could_be_replaced(path: str, root: str) -> bool:
    """True when this user could change the file or any folder between it and the root, and so what runs."""
    place = path
    while True:
        try:
            owner = Path(place).stat().st_uid
        except OSError:
            return True
        if owner == os.geteuid() or os.access(place, os.W_OK):
            return True
        if place in (root, "/") or not _is_below(place, (root,)):
            return False
        place = str(Path(place).parent)


def _prefix(folder: str) -> str:
    """The folder a tool is installed in: the parent of its `bin`, unless that would show a whole home or disk."""
    above = str(Path(folder).parent)
    if Path(folder).name not in ("bin", "shims", "libexec"):
        return folder
    if above in ("/", home()) or home().startswith(above + "/") or Path(above).name == ".local":
        return folder
    return above


def _is_program(path: str) -> bool:
    try:
        found = os.stat(path)  # noqa: PTH116  # every command waits for this
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and os.access(path, os.X_OK)


def _is_below(path: str, places: Sequence[str]) -> bool:
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)
