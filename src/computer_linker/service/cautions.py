"""What an owner should know before a folder is exposed: it holds more than a project, or it is exposed already."""

import os
from collections.abc import Iterator
from pathlib import Path

from computer_linker.config.runtime import forbidden_root, state_inside
from computer_linker.config.schema import Config
from computer_linker.config.store import exists
from computer_linker.errors import ConfigInvalid
from computer_linker.policy.names import held_in
from computer_linker.service.settings import live_config


def cautions(folders: list[str], home: Path, *, scope: str | None = None, merges: bool = False) -> list[str]:
    """One sentence for each reason to think again. `scope` is the one that gets these folders.

    `merges`: a folder that is exposed already gets no second scope.
    """
    state = Path(os.path.realpath(home))
    # What cannot be exposed at all is refused, and needs no warning.
    exposable = [folder for folder in folders if Path(folder).is_dir() and forbidden_root(folder, state) is None]
    return [sentence for folder in exposable for sentence in _of(folder, home, scope, merges=merges)]


def _of(folder: str, home: Path, scope: str | None, *, merges: bool) -> Iterator[str]:
    real = Path(os.path.realpath(folder))
    wide = more_than_a_project(folder)
    if wide is not None:
        yield f"{folder} {wide}"
    if state_inside(folder, Path(os.path.realpath(home))) is not None:
        yield f"{folder} contains the state folder {home}, which is kept out of the scope."
    if not merges:
        others = [other for other in _exposing(real, home) if other != scope]
        if others:
            yield f"{folder} is exposed already, by scope {' and '.join(others)}."


def more_than_a_project(folder: str) -> str | None:
    """Why to think again before clients get this folder, to follow its name; None for an ordinary one."""
    real, own = Path(os.path.realpath(folder)), Path.home().resolve()
    if own.is_relative_to(real):
        what = "your whole home folder" if own == real else "a folder around your home folder"
        return f"is {what}. Keys and passwords stay closed; everything else in it is open."
    match held_in(real.parts[1:], real.relative_to(own).parts if real.is_relative_to(own) else None):
        case "logins":
            return (
                "holds keys or logins. Only files known by their own names stay closed; everything else in it is open."
            )
        case "programs":
            return "holds files that other programs run or trust. A client that changes them chooses what runs as you."
        case _:
            return None


def _exposing(real: Path, home: Path) -> list[str]:
    config = _config(home)
    scopes = config.scopes if config is not None else []
    return [scope.id for scope in scopes if str(real) in (os.path.realpath(root) for root in scope.roots)]


def _config(home: Path) -> Config | None:
    try:
        return live_config(home).current() if exists(home) else None
    except ConfigInvalid:
        # The command itself is refused for it.
        return None
