"""Owner and permission checks: the state is used only if no other user could have changed it."""

import stat
from pathlib import Path

from computer_linker.errors import ConfigInvalid
from computer_linker.system import make_private_folders, os

FOLDER_MODE = 0o700
FILE_MODE = 0o600
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
READABLE_BY_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_folder(folder: Path) -> None:
    """Create the state folder, private from the start; an existing one is not changed."""
    try:
        make_private_folders(str(folder))
    except OSError as error:
        raise ConfigInvalid(
            f"the state folder cannot be made: {error.strerror}", "set COMPUTER_LINKER_HOME to a folder you may write"
        ) from error


def not_set_up() -> ConfigInvalid:
    """The refusal where there is no state folder."""
    return ConfigInvalid("this computer is not set up yet", "run: computer-linker start FOLDER")


def check_folder(folder: Path) -> None:
    """Raise ConfigInvalid unless the folder is ours and no other user can write to it."""
    try:
        found = os.stat(folder)
    except FileNotFoundError:
        raise not_set_up() from None
    except OSError as error:
        raise ConfigInvalid(
            f"the state folder cannot be opened: {error.strerror}", f"look at the rights of {folder}"
        ) from error
    if not stat.S_ISDIR(found.st_mode):
        raise ConfigInvalid("the state folder is not a folder", "set COMPUTER_LINKER_HOME to a folder")
    check_owner(found, "the state folder", f"chmod 700 {folder}")
    _check_above(folder.resolve())


def check_owner(found: os.stat_result, what: str, remedy: str) -> None:
    """Raise ConfigInvalid when another user owns the object, or another user may write it."""
    if found.st_uid not in (os.geteuid(), 0):
        raise ConfigInvalid(f"{what} belongs to another user (uid {found.st_uid})", "use a state folder of your own")
    if found.st_mode & WRITABLE_BY_OTHERS:
        mode = stat.S_IMODE(found.st_mode)
        raise ConfigInvalid(f"{what} can be written by other users (mode {mode:04o})", f"run: {remedy}")


def _check_above(folder: Path) -> None:
    """A folder anyone may rename entries in cannot hold the state: its owner could swap the whole folder."""
    for parent in folder.parents:
        mode = os.stat(parent).st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise ConfigInvalid(
                f"the state folder lies below {parent}, which any user can change",
                f"run: chmod o-w {parent}, or set COMPUTER_LINKER_HOME elsewhere",
            )
