"""Intake roots: folders beside a scope where backends leave their files, opened by descriptor without following a link.

A file is taken only when the user of this service owns it under this one name, and it lies in no scope and not in the service's
own state: an intake root such as the temporary folder may hold all of these.
"""

import stat
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePath

from anyio.to_thread import run_sync

from computer_linker.config.runtime import work_folder
from computer_linker.config.schema import Config
from computer_linker.errors import LimitExceeded, NotFound, PermissionDenied
from computer_linker.home import is_marked
from computer_linker.model.paths import split_target
from computer_linker.model.scope import Scope
from computer_linker.policy.names import is_private, is_sensitive
from computer_linker.providers.backends.found import known_backends
from computer_linker.system import os

TEMPORARY = "temporary"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class IntakeRoot:
    """One folder, resolved, and names in it that are never opened."""

    name: str
    place: str
    closed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Taken:
    """A file's content, and the intake root it came from."""

    root: str
    content: bytes


def intake_roots(scope: Scope) -> list[IntakeRoot]:
    """The intake roots that the scope's policy names; an unknown name is none."""
    found: list[IntakeRoot] = []
    for name in scope.policy.intake_roots:
        if name.startswith("/"):
            found.append(IntakeRoot(name, os.path.realpath(name)))
        elif name == TEMPORARY:
            found.append(IntakeRoot(name, os.path.realpath(tempfile.gettempdir())))
        for backend in known_backends():
            if backend.name == name and backend.output_folder is not None:
                place = Path(backend.output_folder).expanduser()
                found.append(IntakeRoot(name, os.path.realpath(place), backend.closed))
    return found


async def read_from_intake(scope: Scope, config: Config, home: Path, target: str, most: int) -> Taken | None:
    """The content of an absolute path in an intake root; None where it lies in none."""
    if not target.startswith("/"):
        return None
    for root in intake_roots(scope):
        if target.startswith(root.place.rstrip("/") + "/"):
            parts = split_target(target[len(root.place.rstrip("/")) + 1 :])
            _refuse_names(root, parts)
            _refuse_places(PurePath(root.place, *parts), config, home)
            return Taken(root.name, await run_sync(_read, root.place, parts, most))
    return None


def _refuse_names(root: IntakeRoot, parts: tuple[str, ...]) -> None:
    is_hidden = any(part.startswith(".") for part in parts)
    if (
        not parts
        or is_hidden
        or is_sensitive(parts)
        or is_private(parts)
        or root.closed & {part.lower() for part in parts}
    ):
        raise PermissionDenied(
            "This name in an intake root is not opened: it is hidden, or usually holds a secret or a saved login.",
            rule="sensitive",
        )


def _refuse_places(place: PurePath, config: Config, home: Path) -> None:
    state = Path(os.path.realpath(home))
    # The own scope's too: there its rules decide, by the path from its folder.
    scopes = [Path(os.path.realpath(root)) for scope in config.scopes for root in scope.roots]
    if any(place.is_relative_to(closed) for closed in (state, work_folder(state), *scopes)):
        raise PermissionDenied(
            "The file lies in a scope or in the service's own state, so no intake takes it.", rule="other_scope"
        )


def _refuse_state(folder: int) -> None:
    if is_marked(folder):
        raise PermissionDenied(
            "The file lies in the state of another service, so no intake takes it.", rule="service_state"
        )


def _read(root: str, parts: tuple[str, ...], most: int) -> bytes:
    with ExitStack() as stack:
        try:
            folder = os.open(root, _FOLDER)
            stack.callback(os.close, folder)
            _refuse_state(folder)
            for name in parts[:-1]:
                folder = os.open(name, _FOLDER, dir_fd=folder)
                stack.callback(os.close, folder)
                _refuse_state(folder)
            fd = os.open(parts[-1], _FILE, dir_fd=folder)
            stack.callback(os.close, fd)
        except OSError as error:
            raise NotFound(
                "There is no such file in the intake root, or a link leads to it; links are not followed.",
                errno=error.errno,
            ) from None
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink != 1:
            raise PermissionDenied(
                "Only a regular file of this user with a single name is taken from an intake root.", rule="intake"
            )
        if found.st_size > most:
            raise LimitExceeded(f"An artifact is at most {most} bytes.", limitBytes=most)
        with os.fdopen(os.dup(fd), "rb") as file:
            content = file.read(most + 1)
    if len(content) > most:
        raise LimitExceeded(f"An artifact is at most {most} bytes.", limitBytes=most)
    return content
