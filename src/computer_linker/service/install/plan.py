"""The plan for a service manager: program, folder and a few variables, never a secret; and how managers are run."""

import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from computer_linker.config.schema import Config
from computer_linker.policy.writers import find_program
from computer_linker.system import os

NAME = "computer-linker"
_FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class Plan:
    """One service of one state folder."""

    home: Path
    argv: tuple[str, ...]
    environment: dict[str, str]
    with_desktop: bool = False
    """True to start with the desktop session instead of the first login."""


@dataclass(frozen=True)
class ServiceStatus:
    """The service's state as the service manager reports it."""

    is_enabled: bool
    state: str
    pid: int | None = None
    restarts: int | None = None
    detail: str | None = None


class ServiceManager(Protocol):
    """systemd, launchd or the task scheduler, as far as this program uses it."""

    name: str
    is_proven: bool
    """False for a system that could not be tried: the file is checked, the commands are not."""

    def file(self) -> Path:
        """The one file that is written."""
        ...

    def rendered(self, plan: Plan) -> bytes:
        """The file's text."""
        ...

    def check_usable(self) -> None:
        """Raise ServiceManagerFailed when the manager does not answer."""
        ...

    def start(self) -> None:
        """Have the written file take effect, now and at each login, and start the service anew."""
        ...

    def status(self) -> ServiceStatus:
        """The service's present state."""
        ...

    def remove(self) -> None:
        """Stop and disable the service; the caller then removes the file."""
        ...

    def forget(self) -> None:
        """Notify the manager that the file was removed."""
        ...


class ServiceManagerFailed(Exception):
    """A command of the service manager did not work: one line, and what would help."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def make_plan(home: Path, config: Config, *, with_desktop: bool = False) -> Plan:
    """The plan for this installation of the program and this state folder."""
    environment = {"COMPUTER_LINKER_HOME": os.fspath(home), "PATH": _safe_path(config, os.environ.get("PATH", ""))}
    return Plan(home, (sys.executable, "-I", "-m", "computer_linker", "serve", "--log"), environment, with_desktop)


def _safe_path(config: Config, path: str) -> str:
    """The PATH of the terminal that installs, without folders that a client or another user could put programs into."""
    roots = [root for scope in config.scopes for root in scope.roots]
    kept = [folder for folder in dict.fromkeys(path.split(os.pathsep)) if _is_safe(folder, roots)]
    return os.pathsep.join(kept) or _FALLBACK_PATH


def _is_safe(folder: str, roots: list[str]) -> bool:
    if not Path(folder).is_absolute() or not folder.isprintable():
        return False
    place = Path(folder).resolve()
    # Write access to a parent folder allows replacing it.
    if not _is_only_ours(place) or not all(_is_only_ours(one, or_sticky=True) for one in place.parents):
        return False
    return not any(place.is_relative_to(one) for root in roots for one in (root, Path(root).resolve()))


def _is_only_ours(folder: Path, *, or_sticky: bool = False) -> bool:
    """True when only this user and root can write there; in a sticky folder no other user can replace our entries."""
    try:
        found = os.stat(folder)
    except OSError:
        return False
    shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return found.st_uid in (0, os.getuid()) and (not shared or (or_sticky and bool(found.st_mode & stat.S_ISVTX)))


def manager_program(name: str) -> str:
    """Where the manager's own program is. Raises ServiceManagerFailed."""
    path = find_program(name)
    if path is None:
        raise ServiceManagerFailed(f"{name} is not on this machine", "run computer-linker start in a terminal instead")
    return path


_DEADLINE_S = 60.0
_MAX_OUTPUT = 100_000


def ask(argv: Sequence[str], env: Mapping[str, str], *, may_fail: bool = False) -> str:
    """Run a command without a shell, with bounded time and output; returns stdout. Raises ServiceManagerFailed."""
    try:
        done = subprocess.run(
            list(argv), stdin=subprocess.DEVNULL, capture_output=True, timeout=_DEADLINE_S, env=dict(env), check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServiceManagerFailed(f"{argv[0]} did not answer: {error}") from error
    if done.returncode != 0 and not may_fail:
        said = done.stderr[:_MAX_OUTPUT].decode("utf-8", "replace").strip().splitlines()
        raise ServiceManagerFailed(said[-1] if said else f"{argv[0]} ended with exit code {done.returncode}")
    return done.stdout[:_MAX_OUTPUT].decode("utf-8", "replace")


def fields(text: str, between: str) -> dict[str, str]:
    """Lines of a name and a value, as managers answer."""
    found = (line.partition(between) for line in text.splitlines())
    return {name.strip(): value.strip() for name, sign, value in found if sign}
