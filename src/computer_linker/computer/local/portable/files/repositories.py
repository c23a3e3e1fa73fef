"""Keeps file changes from making a folder a git repository, or from changing what git executes in one."""

from typing import TYPE_CHECKING

from computer_linker.errors import PermissionDenied
from computer_linker.model.paths import RootedPath
from computer_linker.policy.names import GIT_NAMES, is_git_folder
from computer_linker.system import os

if TYPE_CHECKING:
    from computer_linker.computer.local.portable.files.open import OpenedParent

_GIT_NAMES = {name.casefold(): name for name in GIT_NAMES}


def refuse_repository(place: "OpenedParent") -> None:
    """Refuse names that turn a folder into a git repository, or that git executes or reads in one without `.git`."""
    if place.path.rules.allow_protected:
        return
    first = _GIT_NAMES.get((place.missing[0] if place.missing else place.name).casefold())
    is_hook = not place.missing and place.path.parent.name.casefold() == "hooks"
    where = "" if first is not None else "../" if is_hook else None
    if where is None:
        return
    there = {name for name in GIT_NAMES if _is_there(place.folder, where + name)}
    refuse_git_folder(place.path, there | {first or "hooks"})


def refuse_git_folder(path: RootedPath, names: set[str]) -> None:
    """Refuse to write the path when git would treat its folder, with these names, as a repository."""
    if is_git_folder(names):
        raise PermissionDenied(
            f"{path.shown} is protected: with it git takes this folder for a repository, and runs what that says. "
            "The owner can allow it with the scope's policy `allowProtected`.",
            path=path.shown,
            rule="protected",
        )


def _is_there(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True
