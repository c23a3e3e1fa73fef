"""Installed applications as desktop entries describe them (the freedesktop.org specification)."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from computer_linker.model.titles import safe_title

_MAX_ENTRIES = 2000
_MAX_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One application a person could start."""

    id: str
    name: str
    exec: str
    wm_class: str
    try_exec: str
    in_terminal: bool
    path: str
    """Its .desktop file."""

    def argv(self, arguments: Sequence[str]) -> list[str]:
        """The program and its arguments; files and addresses replace the entry's field codes."""
        argv: list[str] = []
        placed = False
        for part in shlex.split(self.exec):
            if part in ("%f", "%F", "%u", "%U"):
                argv.extend(arguments if part in ("%F", "%U") else arguments[:1])
                placed = True
            elif part == "%c":
                argv.append(self.name)
            elif not (len(part) == 2 and part.startswith("%") and part != "%%"):
                argv.append(part.replace("%%", "%"))
        return argv if placed else [*argv, *arguments]

    @property
    def program(self) -> str:
        """The file name of the program it runs."""
        parts = shlex.split(self.exec)
        return Path(parts[0]).name if parts else ""

    def affinity(self, window_class: str, process: str) -> int:
        """Match score of a window with this class and process: by declared class, by name, by program.

        An entry that starts its program for one task, by an option, comes after the one that starts it plainly: Thunar's
        windows are not those of its bulk renamer.
        """
        wanted, mine = window_class.lower(), {self.id.lower(), self.id.rpartition(".")[2].lower()}
        if self.wm_class:
            return 5 if wanted == self.wm_class.lower() else 0
        if wanted and wanted in mine:
            return 4
        if self.program.lower() not in {wanted, process.lower()} - {""}:
            return 0
        return 1 if any(part.startswith("-") for part in shlex.split(self.exec)[1:]) else 2

    def is_named(self, name: str) -> bool:
        """True for its id, with or without .desktop, or its name."""
        return name.lower().removesuffix(".desktop") in (self.id.lower(), self.name.lower())


def owner_of(window_class: str, process: str, entries: Sequence[Entry]) -> Entry | None:
    """The entry with the highest match score for a window."""
    best = max(entries, key=lambda entry: entry.affinity(window_class, process), default=None)
    return best if best is not None and best.affinity(window_class, process) else None


def installed(environ: Mapping[str, str]) -> list[Entry]:
    """The entries a menu would show, by name. A user's entry hides the system's of the same id."""
    found: dict[str, Entry | None] = {}
    for folder in _folders(environ):
        for path in sorted(folder.rglob("*.desktop"))[:_MAX_ENTRIES] if folder.is_dir() else []:
            app_id = str(path.relative_to(folder)).replace("/", "-").removesuffix(".desktop")
            if app_id not in found:
                found[app_id] = _read(path, app_id)
    return sorted((entry for entry in found.values() if entry is not None), key=lambda entry: entry.name.lower())


def _folders(environ: Mapping[str, str]) -> list[Path]:
    home = environ.get("XDG_DATA_HOME") or (f"{environ['HOME']}/.local/share" if environ.get("HOME") else "")
    shared = environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    return [Path(part) / "applications" for part in (home, *shared.split(":")) if part.startswith("/")]


def _read(path: Path, app_id: str) -> Entry | None:
    """The entry of a file; None when it is hidden, broken or no application."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            fields = _fields(file.read(_MAX_BYTES))
    except OSError:
        return None
    if fields.get("Type") != "Application" or "true" in (fields.get("NoDisplay"), fields.get("Hidden")):
        return None
    try:
        shlex.split(fields.get("Exec", ""))
    except ValueError:
        return None
    if not fields.get("Exec"):
        return None
    return Entry(
        id=app_id,
        name=safe_title(fields.get("Name", app_id)),
        exec=fields["Exec"],
        wm_class=fields.get("StartupWMClass", ""),
        try_exec=fields.get("TryExec", ""),
        in_terminal=fields.get("Terminal") == "true",
        path=str(path),
    )


def _fields(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    inside = False
    for line in text.splitlines():
        if line.startswith("["):
            inside = line.strip() == "[Desktop Entry]"
        elif inside and "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            fields.setdefault(key.strip(), value.strip())
    return fields
