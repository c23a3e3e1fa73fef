"""Applications on Linux: started from desktop entries as a menu does, recognized by their windows."""

import os
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import anyio
from anyio import to_thread

from computer_linker.computer.facets.windows import App, Windows
from computer_linker.errors import ExecutionFailed, InvalidRequest, NotFound, PermissionDenied, UnsupportedPlatform
from computer_linker.model.geometry import Window, safe_title
from computer_linker.model.scope import Scope
from computer_linker.policy.writers import find_program, planter_of, writer_of, writers_of

# Installed applications as desktop entries describe them (the freedesktop.org specification).

_PLACES = ("%f", "%F", "%u", "%U")
"""Where an entry's command takes files or addresses."""
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
    is_terminal: bool = False
    """It is a terminal, which takes a file for a program to run."""

    @property
    def takes_files(self) -> bool:
        """Whether it opens files or addresses: its command has a place for them, and it runs none."""
        return not self.is_terminal and any(part in _PLACES for part in shlex.split(self.exec))

    def argv(self, arguments: Sequence[str]) -> list[str]:
        """The program and its arguments; files and addresses replace the entry's field codes."""
        argv: list[str] = []
        for part in shlex.split(self.exec):
            if part in _PLACES:
                argv.extend(arguments if part in ("%F", "%U") else arguments[:1])
            elif part == "%c":
                argv.append(self.name)
            elif not (len(part) == 2 and part.startswith("%") and part != "%%"):
                argv.append(part.replace("%%", "%"))
        return argv

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
        is_terminal="TerminalEmulator" in fields.get("Categories", "").split(";"),
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


_WINDOW_S = 15.0
_PASSED_ON_S = 3.0
"""A program that has passed its request on to a running instance has ended; a window then shows within this time."""
_LOOK_S = 0.05
_PASSED_ON = (
    "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL",
    "USER", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_CONFIG_HOME", "XDG_CURRENT_DESKTOP", "XDG_DATA_DIRS", "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR", "XDG_SESSION_TYPE", "XDG_SESSION_DESKTOP", "DESKTOP_SESSION", "GDK_BACKEND", "GDK_SCALE",
    "GTK_MODULES", "GTK_THEME", "GTK_IM_MODULE", "QT_IM_MODULE", "XMODIFIERS", "QT_QPA_PLATFORM", "QT_QPA_PLATFORMTHEME",
    "QT_ACCESSIBILITY", "QT_SCALE_FACTOR", "SAL_USE_VCLPLUGIN", "NO_AT_BRIDGE", "SWAYSOCK",
)  # fmt: skip
"""The environment variables an application needs; it inherits no others from the service."""


class LinuxApps:
    """Apps on Linux, on any window system whose windows can be listed."""

    def __init__(
        self, windows: Windows, environ: Mapping[str, str], scopes: Callable[[], Sequence[Scope]] = tuple
    ) -> None:
        """`scopes` returns the configured scopes: a program that lies in a writable one is not started."""
        self._windows = windows
        self._environ = dict(environ)
        self._scopes = scopes
        self.has_opened = False
        """Whether any was started; what it does over TCP is looked at from then on."""

    async def list(self, *, running_only: bool = False) -> list[App]:
        """Installed applications, and windows of programs without a desktop entry."""
        entries = await to_thread.run_sync(installed, self._environ)
        windows = await self._windows.list()
        apps = _described(windows, entries)
        return [app for app in apps if app.windows or not running_only]

    async def open(self, app: str, arguments: Sequence[str] = ()) -> App:
        """Start an application and wait for its window."""
        entry = await self._entry(app)
        argv = await to_thread.run_sync(self._argv, entry, arguments)
        before = {window.id: window.title for window in await self._windows.list()}
        process = await to_thread.run_sync(self._start, argv)
        windows = await self._shown(entry, process, before)
        if not windows and process.poll() not in (None, 0):
            raise ExecutionFailed("The application ended at once.", exitCode=process.returncode)
        return App(
            id=entry.id,
            name=entry.name,
            pids=sorted({window.pid for window in windows if window.pid} or {process.pid}),
            windows=[window.id for window in windows],
        )

    async def _shown(
        self, entry: Entry, process: "subprocess.Popen[bytes]", before: Mapping[str, str]
    ) -> Sequence[Window]:
        """The new windows of a started application; those of its running instance where it passed the request on."""
        ended_at: float | None = None
        own: list[Window] = []
        with anyio.move_on_after(_WINDOW_S):
            while process.poll() in (None, 0):
                await anyio.sleep(_LOOK_S)
                own = [
                    window
                    for window in await self._windows.list()
                    if window.pid == process.pid or entry.affinity(window.app, window.process)
                ]
                if fresh := [window for window in own if before.get(window.id) != window.title]:
                    return fresh
                if process.poll() == 0 and any(window.id in before for window in own):
                    ended_at = time.monotonic() if ended_at is None else ended_at
                    if own[0].is_focused or time.monotonic() - ended_at > _PASSED_ON_S:
                        return own
        return [window for window in own if window.id not in before]

    async def close(self, app: str) -> bool:
        """Ask all its windows to close."""
        found = await self._running(app)
        return all([await self._windows.close(window_id) for window_id in found.windows])

    async def focus(self, app: str) -> App:
        """Bring its topmost window to the front."""
        found = await self._running(app)
        await self._windows.focus(found.windows[0])
        return found

    async def _entry(self, app: str) -> Entry:
        for entry in await to_thread.run_sync(installed, self._environ):
            if entry.is_named(app):
                return entry
        raise NotFound("No installed application has this id or name; app.list gives them.", app=app[:80])

    async def _running(self, app: str) -> App:
        for found in await self.list(running_only=True):
            if app.lower().removesuffix(".desktop") in (found.id.lower(), found.name.lower()):
                return found
        raise NotFound("No running application with a window has this id or name.", app=app[:80])

    def _argv(self, entry: Entry, arguments: Sequence[str]) -> Sequence[str]:
        if any(argument.startswith("-") for argument in arguments):
            raise InvalidRequest("Arguments are files or addresses; options are not passed on.")
        if entry.in_terminal:
            raise UnsupportedPlatform("This application runs in a terminal; use command.start with a pty.")
        if arguments and not entry.takes_files:
            raise InvalidRequest("This application opens no files or addresses by its entry, so it gets no arguments.")
        if any(_is_program(argument, self._environ.get("HOME", "/")) for argument in arguments):
            raise PermissionDenied("A file that can be run is not handed to an application.", rule="executableArgument")
        argv = entry.argv(arguments)
        search, writers = self._environ.get("PATH", "").split(os.pathsep), writers_of(self._scopes())
        program = find_program(argv[0], search)
        if program is None:
            raise NotFound(f"The application's program {argv[0][:80]!r} is not installed.")
        # `env` and `sh` start what the entry names after them.
        started = (found for word in entry.argv(()) if (found := find_program(word, search)) is not None)
        if writer_of(entry.path, writers) or any(planter_of(one, writers, search) for one in (program, *started)):
            raise PermissionDenied(
                "The application, or the file that describes it, lies where a scope can write, so it is not started.",
                rule="programOfAnotherScope",
            )
        return [program, *argv[1:]]

    def _start(self, argv: Sequence[str]) -> "subprocess.Popen[bytes]":
        self.has_opened = True
        env = {name: self._environ[name] for name in _PASSED_ON if name in self._environ}
        home = Path(env.get("HOME", "/"))
        process = subprocess.Popen(
            argv, env=env, cwd=home if home.is_dir() else "/", start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        # The application outlives the call and may outlive the service; waiting only prevents a zombie.
        threading.Thread(target=process.wait, name=f"wait {process.pid}", daemon=True).start()
        return process


def _is_program(argument: str, folder: str) -> bool:
    """True for a file that can be run, or that describes a program to run; `folder` is where the application starts."""
    address = urlsplit(argument)
    path = Path(folder, unquote(address.path) if address.scheme == "file" else argument)
    return path.suffix.lower() == ".desktop" or (path.is_file() and os.access(path, os.X_OK))


def _described(windows: Sequence[Window], entries: Sequence[Entry]) -> list[App]:
    """Every entry with its windows, then the programs without an entry."""
    owned: dict[str, list[Window]] = {entry.id: [] for entry in entries}
    strangers: dict[str, list[Window]] = {}
    for window in windows:
        owner = owner_of(window.app, window.process, entries)
        if owner is not None:
            owned[owner.id].append(window)
        elif window.app or window.process:
            strangers.setdefault(window.app or window.process, []).append(window)
    known = [_app(entry.id, entry.name, owned[entry.id]) for entry in entries]
    return known + [_app(name, name, mine) for name, mine in sorted(strangers.items())]


def _app(app_id: str, name: str, windows: Sequence[Window]) -> App:
    return App(
        id=app_id,
        name=name,
        pids=sorted({window.pid for window in windows if window.pid}),
        windows=[window.id for window in windows],
    )
