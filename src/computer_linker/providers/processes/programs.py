"""Resolves program names on a trusted search path, never in a folder that a scope can write."""

import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from computer_linker.errors import InvalidRequest, NotFound, PermissionDenied
from computer_linker.policy.commands import Program
from computer_linker.policy.names import is_sensitive
from computer_linker.policy.writers import Writer, could_be_replaced, is_below, is_program, planter_of, writer_of
from computer_linker.providers.sandbox.places import SYSTEM, home, tool_folders
from computer_linker.system import os, program_names, slashed

_ALWAYS = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")


class Programs:
    """Finds programs for one scope. `roots` are the folders the scope could write to, `others` the other scopes that write.

    `private` are folders that no program is shown for its own sake: those of all scopes, and the service's state.
    """

    def __init__(
        self,
        roots: Sequence[str],
        environ: Mapping[str, str],
        others: Sequence[Writer] = (),
        extras: Sequence[str] = (),
        private: Sequence[str] = (),
    ) -> None:
        self._private = tuple(private)
        self._others = tuple(others)
        self._changeable: list[str] = []
        self._roots = tuple(os.path.realpath(root) for root in roots)
        self._configured_roots = tuple(roots)
        self._inside = tuple(f"{root.rstrip('/')}/" for root in {*self._roots, *roots})
        self.search_path = self._trusted(environ.get("PATH", ""))
        self._real_folders = {folder: os.path.realpath(folder) for folder in self.search_path}
        self.extras = {os.path.basename(path): path for path in extras if self._is_extra(path)}
        """Programs that come with the service and are not on the search path, by name."""

    def locate(self, name: str) -> str | None:
        """The absolute path of a rule's program; None when there is none. Used to compare, not to run."""
        if "/" in name:
            place = name if os.path.isabs(name) else f"{self._configured_roots[0]}/{name}" if self._roots else ""
            return self._normal(place) if place else None
        return self._found_in(self.search_path, name) or self.extras.get(name)

    def resolve(self, argv0: str, cwd: str) -> Program:
        """The file this argv would execute. Raises NotFound when there is none."""
        argv0 = slashed(argv0)
        if "/" in argv0:
            place = argv0 if os.path.isabs(argv0) else f"{cwd}/{argv0}"
            found = self._normal(place) if is_program(place) else None
        else:
            # A program that another scope could have written is found last, so that the refusal can name that scope.
            found = self.locate(argv0) or self._found_in(self._changeable, argv0)
        if found is None:
            raise NotFound(f"There is no program {argv0[:80]!r} here.", program=argv0[:80])
        # Its folder is resolved already, so only the last name can still be a link.
        real = os.path.realpath(found) if os.path.islink(found) else found  # every command waits for this
        mode = os.stat(real).st_mode  # every command waits for this
        if mode & (stat.S_ISUID | stat.S_ISGID) and not real.startswith("/usr/"):
            raise PermissionDenied("The program carries rights of another user.", rule="setuid")
        is_own = self._could_replace(found, real)
        project = _project_name(found) if is_own else ""
        planter = planter_of(found, self._others, self.search_path) if project or not is_own else None
        return Program(found, real, is_own, None if is_own else planter, project, planter if project else None)

    def is_in_scope(self, program: Program) -> bool:
        """True for a program that lies in one of the scope's own folders."""
        return any(f"{place}/".startswith(self._inside) for place in (program.path, program.real))

    def places(self, program: Program) -> tuple[str, ...]:
        """Paths the program needs to start: its own file, and its install folder when it is on the search path."""
        wanted: list[str] = []
        for path in (program.path, program.real):
            folder = os.path.dirname(path)  # every command waits for this
            if is_below(path, SYSTEM) or is_below(path, tool_folders()) or self._is_writable_by_scope(path):
                continue
            if program.project_name and folder not in self.search_path:
                # The scope chose what its own link leads to.
                continue
            wanted.append(_prefix(folder, self._private) if folder in self.search_path or wanted else path)
        return tuple(dict.fromkeys(wanted))

    def _is_extra(self, path: str) -> bool:
        name = os.path.basename(path)
        is_known = self._found_in((*self.search_path, *self._changeable), name) is not None
        return not is_known and not self._is_writable_by_scope(path) and writer_of(path, self._others) is None

    def _trusted(self, path: str) -> tuple[str, ...]:
        folders: list[str] = []
        for folder in (*map(slashed, path.split(os.pathsep)), *_ALWAYS):
            if not os.path.isabs(folder) or folder in folders or self._is_writable_by_scope(folder):
                continue
            trusted = writer_of(folder, self._others) is None
            (folders if trusted else self._changeable).append(folder)
        return tuple(folders)

    def _found_in(self, folders: Sequence[str], name: str) -> str | None:
        for folder in folders:
            for candidate in program_names(f"{folder}/{name}"):
                if is_program(candidate):
                    return self._normal(candidate)
        return None

    def _normal(self, path: str) -> str:
        """Absolute, with the folder resolved and the last name kept: a multi-call program is identified by it."""
        folder, name = os.path.split(path)
        if name in ("", ".", ".."):
            raise InvalidRequest("The program's name is a folder.")
        real = self._real_folders.get(folder) or os.path.realpath(folder)
        return f"{real.rstrip('/')}/{name}"

    def _is_writable_by_scope(self, path: str) -> bool:
        return self._could_replace(path, os.path.realpath(path))

    def _could_replace(self, path: str, real: str) -> bool:
        """True when the scope could change what this path, which resolves to `real`, refers to."""
        if not f"{path}/".startswith(self._inside) and not f"{real}/".startswith(self._inside):
            return False
        roots = [root for root in self._roots if is_below(real, (root,))]
        roots += [root for root in self._configured_roots if is_below(path, (root,)) or is_below(real, (root,))]
        return any(could_be_replaced(place, root) for root in roots for place in (path, real))


def _project_name(path: str) -> str:
    """The program that a file of a virtual environment or of node_modules/.bin stands for; empty for other files."""
    above, _, name = path.rpartition("/")
    is_python = above.endswith(("/.venv/bin", "/venv/bin")) and os.path.isfile(f"{above[:-4]}/pyvenv.cfg")
    return name if is_python or above.endswith("/node_modules/.bin") else ""


def _prefix(folder: str, private: Sequence[str]) -> str:
    """The folder a tool is installed in: the parent of its `bin`, unless that holds more than the tool, as a home or project."""
    above = str(Path(folder).parent)
    if Path(folder).name not in ("bin", "shims", "libexec"):
        return folder
    if above in ("/", home()) or home().startswith(above + "/") or Path(above).name == ".local":
        return folder
    return folder if any(is_below(place, (above,)) for place in private) or _holds_work(above) else above


def _holds_work(folder: str) -> bool:
    """True for a folder with a repository or secrets of its own. Tools that are repositories, as rbenv is, have hidden names."""
    names = [each.name for each in Path(folder).iterdir()] if os.access(folder, os.R_OK) else [".git"]
    is_repository = ".git" in names and not Path(folder).name.startswith(".")
    return is_repository or any(is_sensitive((name,)) for name in names)
