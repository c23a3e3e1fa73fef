"""What every system's service manager is told: which program, which folder, which few variables. Never a secret."""

import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from computer_linker.config.schema import Config
from computer_linker.providers.child import find_program

NAME = "computer-linker"
_FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class Plan:
    """One service of one state folder."""

    home: Path
    argv: tuple[str, ...]
    environment: dict[str, str]
    with_desktop: bool = False
    """True when it is to start with the desktop session instead of with the first login."""


@dataclass(frozen=True)
class Standing:
    """What the service manager says of the service."""

    is_loaded: bool
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
        """What is written there."""
        ...

    def check_usable(self) -> None:
        """Raise ServiceManagerFailed when it does not answer here."""
        ...

    def start(self) -> None:
        """Have the written file take effect, now and at each login, and start the service anew."""
        ...

    def standing(self) -> Standing:
        """What it says now."""
        ...

    def remove(self) -> None:
        """Stop the service, and start it no more; the caller then removes the file."""
        ...

    def forget(self) -> None:
        """Take note that the file is gone."""
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


def shown(plan: Plan) -> dict[str, Any]:
    """The plan for people and scripts."""
    return {"home": os.fspath(plan.home), "argv": list(plan.argv), "environment": plan.environment}


def _safe_path(config: Config, path: str) -> str:
    """The PATH of the terminal that installs, without folders that a client or another user could put programs into."""
    roots = [root for scope in config.scopes for root in scope.roots]
    kept = [folder for folder in dict.fromkeys(path.split(os.pathsep)) if _is_safe(folder, roots)]
    return os.pathsep.join(kept) or _FALLBACK_PATH


def _is_safe(folder: str, roots: list[str]) -> bool:
    if not Path(folder).is_absolute() or not folder.isprintable():
        return False
    place = Path(folder).resolve()
    # Whoever may write above it may put another folder in its place.
    if not _is_only_ours(place) or not all(_is_only_ours(one, or_sticky=True) for one in place.parents):
        return False
    return not any(place.is_relative_to(one) for root in roots for one in (root, Path(root).resolve()))


def _is_only_ours(folder: Path, *, or_sticky: bool = False) -> bool:
    """True when nobody but this user and the system's can put things there; in a sticky folder nobody can replace ours."""
    try:
        found = folder.stat()
    except OSError:
        return False
    owners = (0, os.getuid()) if hasattr(os, "getuid") else (found.st_uid,)
    shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return found.st_uid in owners and (not shared or (or_sticky and bool(found.st_mode & stat.S_ISVTX)))


def manager_program(name: str) -> str:
    """Where the manager's own program is. Raises ServiceManagerFailed."""
    path = find_program(name)
    if path is None:
        raise ServiceManagerFailed(f"{name} is not on this machine", "run computer-linker start in a terminal instead")
    return path
