"""Checks the program of a tunnel: absolute path, not writable by others, outside every scope, with the right digest."""

import hashlib
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from computer_linker.config.private import check_owner
from computer_linker.config.schema import Config
from computer_linker.errors import ConfigInvalid, ProviderUnavailable
from computer_linker.system import os
from computer_linker.system.sealing import new_copy, sealed

_MAX_SECRET = 16_384
_MAX_PROGRAM = 512 * 1024 * 1024
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Wanted:
    """A program by the path the owner configured or, where `path` is None, by its name in the system's folders."""

    name: str
    path: str | None
    sha256: str | None = None
    hint: str | None = None
    """What helps where there is none."""


def checked(wanted: Wanted, found: str | None, config: Config) -> str:
    """The absolute path of a file that may be run. Raises ProviderUnavailable with the reason when there is none."""
    given = wanted.path or found
    if given is None:
        hint = f"Install {wanted.name}, or name its path: computer-linker tunnel start PROVIDER --program PATH"
        raise ProviderUnavailable(f"{wanted.name} is not installed.", hint=wanted.hint or hint)
    if not Path(given).is_absolute():
        raise ProviderUnavailable(f"The path of {wanted.name} is not absolute.", hint="Name the whole path.")
    path = os.path.realpath(given)
    try:
        status = os.stat(path)
    except OSError as error:
        raise ProviderUnavailable(
            f"{wanted.name} cannot be used: {error.strerror}.", hint=f"Look at {given}."
        ) from error
    if not stat.S_ISREG(status.st_mode) or not os.access(path, os.X_OK):
        raise ProviderUnavailable(f"{wanted.name} is not a program that can be run.", hint=f"Look at {given}.")
    _check_owner_only(wanted.name, path, status)
    scope = _scope_of(path, config)
    if scope is not None:
        raise ProviderUnavailable(
            f"{wanted.name} lies in scope {scope}, where clients may have put it.",
            hint="Move the program to a folder outside every scope.",
        )
    return path


@contextmanager
def runnable(wanted: Wanted, path: str) -> Iterator[str]:
    """The path to execute. A program with a digest is copied while it is hashed, and the sealed copy is what runs.

    Raises ProviderUnavailable for a digest that differs; nothing of the file has run then.
    """
    if wanted.sha256 is None:
        yield path
        return
    copy = new_copy("tunnel-program")
    try:
        held = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0))
        try:
            if _digest(held, copy) != wanted.sha256:
                raise ProviderUnavailable(
                    f"{wanted.name} does not have the SHA-256 that the config names; it was not run.",
                    hint="Get the program again from its publisher and compare its digest with the published one.",
                )
        finally:
            os.close(held)
        if copy is None:
            yield path
            return
        yield sealed(copy)
    finally:
        if copy is not None:
            os.close(copy)


def private_text(path: str, what: str, config: Config) -> str:
    """Read a secret from a file that only its owner can read. Raises ProviderUnavailable."""
    with _opened(path, what, config) as file:
        text = file.read(_MAX_SECRET).decode("ascii", "replace").strip()
    if not text or any(not " " < letter < "\x7f" for letter in text):
        raise ProviderUnavailable(f"The {what} is not one line of plain text.", hint=f"Look at {path}.")
    return text


def check_private(path: str, what: str, config: Config) -> str:
    """The path of a file that only its owner can read, outside every scope. Raises ProviderUnavailable."""
    _opened(path, what, config).close()
    return path


def check_unshared(path: str, what: str, config: Config) -> str:
    """The path of a file that no other user and no client can change. Raises ProviderUnavailable."""
    _check_outside_scopes(path, what, config)
    try:
        status = os.stat(path)
    except OSError as error:
        raise ProviderUnavailable(f"The {what} cannot be read: {error.strerror}.", hint=f"Look at {path}.") from error
    _check_owner_only(f"the {what}", os.path.realpath(path), status)
    return path


def _opened(path: str, what: str, config: Config) -> BinaryIO:
    _check_outside_scopes(path, what, config)
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise ProviderUnavailable(f"The {what} cannot be read: {error.strerror}.", hint=f"Look at {path}.") from error
    file = os.fdopen(fd, "rb")
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode) or not _is_mine_alone(status):
        file.close()
        raise ProviderUnavailable(f"The {what} can be read by other users.", hint=f"Run: chmod 600 {path}")
    return file


def _check_outside_scopes(path: str, what: str, config: Config) -> None:
    scope = _scope_of(os.path.realpath(path), config)
    if scope is not None:
        raise ProviderUnavailable(
            f"The {what} lies in scope {scope}, where clients can read it.", hint="Move it outside every scope."
        )


def _scope_of(path: str, config: Config) -> str | None:
    """The scope that contains a file; None for a file outside every scope."""
    for scope in config.scopes:
        if any(Path(path).is_relative_to(os.path.realpath(root)) for root in scope.roots):
            return scope.id
    return None


def _is_mine_alone(status: os.stat_result) -> bool:
    return not status.st_mode & 0o077 and status.st_uid in (os.geteuid(), 0)


def _check_owner_only(name: str, path: str, status: os.stat_result) -> None:
    """Check that the file is ours or the system's alone, and that no parent folder lets other users replace it."""
    try:
        check_owner(status, name, f"chmod go-w {path}")
    except ConfigInvalid as error:
        raise ProviderUnavailable(f"{error.message[:1].upper()}{error.message[1:]}.", hint=error.hint) from error
    for folder in Path(path).parents:
        found = os.stat(folder)
        # Group write permission on a folder of programs is set by an administrator; world write permission is never safe.
        if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
            raise ProviderUnavailable(f"Any user can change {folder}, where {name} is.", hint=f"chmod o-w {folder}")
        if found.st_uid not in (os.geteuid(), 0):
            raise ProviderUnavailable(
                f"{folder} belongs to another user.", hint=f"Move {name} to a folder of your own."
            )


def _digest(held: int, copy: int | None) -> str:
    total, size = hashlib.sha256(), 0
    while chunk := os.read(held, _CHUNK):
        size += len(chunk)
        if size > _MAX_PROGRAM:
            return ""
        total.update(chunk)
        while copy is not None and chunk:
            chunk = chunk[os.write(copy, chunk) :]
    return total.hexdigest()
