"""Write config.json: old or new, never half; private from the first byte; one writer at a time."""

import copy
import hashlib
import json
import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from computer_linker.config.load import (
    CONFIG_NAME,
    Check,
    Document,
    document_of,
    machine_name,
    new_machine_id,
    parse,
    read_document,
    read_private,
    validated,
    with_identity,
)
from computer_linker.config.private import FILE_MODE, check_folder, make_folder
from computer_linker.config.schema import SCHEMA_VERSION, Config
from computer_linker.errors import ConfigInvalid, Problem
from computer_linker.system import lock, os, sync

log = logging.getLogger(__name__)
_LOCK_NAME = "config.lock"
_LEGACY_COPY = "config.legacy.json"
LAST_GOOD = "config.last-good.json"
_NOTED = "config.noted.json"
Edit = Callable[[dict[str, Any]], None]
Beside = Callable[[dict[str, Any], dict[str, Any]], None]
"""Writes what belongs to a change, given the document before and after it."""


def exists(home: Path) -> bool:
    """True when there is a config file, readable or not."""
    return os.path.lexists(home / CONFIG_NAME)


def ensure(home: Path, owner_token: str | None) -> bool:
    """Make the state folder and a first config without scopes; True when made now. An existing file is left alone."""
    make_folder(home)
    check_folder(home)
    if exists(home):
        return False
    with locked(home):
        if exists(home):
            return False
        _replace(home, first_document(owner_token))
    return True


def first_document(owner_token: str | None) -> dict[str, Any]:
    """The config of a machine before set-up: loopback only, nothing exposed."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "machineId": new_machine_id(),
        "machineName": machine_name(),
        "host": "127.0.0.1",
        "port": 3939,
        "ownerToken": owner_token,
        "publicBaseUrl": None,
        "scopes": [],
    }


def update(home: Path, edit: Edit, check: Check | None = None, beside: Beside | None = None) -> Config:
    """Read, change (`edit` works in place) and store as one step; the result is validated before a byte is written.

    `beside` runs under the same lock, after the validation and before the file is written.
    """
    check_folder(home)
    with locked(home):
        document = read_document(home)
        validated(document, home, check)
        before = with_identity(document.value, home)
        changed = copy.deepcopy(before)
        edit(changed)
        config = _parsed(changed)
        problems = check(config) if check is not None else []
        if problems:
            raise ConfigInvalid(f"config.json would not be valid: {problems[0].rstrip('.')}", "nothing was changed")
        if beside is not None:
            beside(before, changed)
        if changed != document.value or document.legacy:
            _keep_legacy(home, document)
            _replace(home, changed)
    return config


def _parsed(changed: dict[str, Any]) -> Config:
    """The changed config. The file is valid, so the fault is the change's, and a repair of the file is no remedy."""
    try:
        return parse(changed)
    except ConfigInvalid as error:
        wrong = "; ".join(_by_name(problem, changed) for problem in error.problems) or error.message
        raise ConfigInvalid(wrong, "nothing was changed", error.problems) from error


def _by_name(problem: Problem, changed: dict[str, Any]) -> str:
    """The problem by the names that a command has: the scope's id, and the field without its place in the file."""
    match problem.field:
        case ("scopes", int(index), *names):
            scope = changed["scopes"][index]
            field = ".".join(str(name) for name in names if name != "policy")
            return f"scope {scope.get('id')}: {f'`{field}` ' if field else ''}{problem.text}"
        case ():
            return problem.text
        case names:
            return f"`{'.'.join(map(str, names))}` {problem.text}"


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Hold the advisory lock, which the kernel releases when its holder is killed."""
    try:
        fd = os.open(home / _LOCK_NAME, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), FILE_MODE)
    except OSError as error:
        raise ConfigInvalid(
            f"the state folder cannot be written: {error.strerror}", f"look at the rights and free space of {home}"
        ) from error
    try:
        lock(fd)
        _sweep(home)
        yield
    finally:
        os.close(fd)


def _sweep(home: Path) -> None:
    """Remove temporary files of a killed writer; with the lock held, there is no other writer."""
    for name in (CONFIG_NAME, LAST_GOOD, _LEGACY_COPY, _NOTED, "roots.json"):
        for left in home.glob(f".{name}-*"):
            left.unlink(missing_ok=True)


def _replace(home: Path, value: dict[str, Any]) -> None:
    raw = as_text(value)
    write_config(home, raw)
    keep_last_good(home, raw)


def write_config(home: Path, raw: bytes) -> None:
    """Put these bytes in place of config.json as a change of this program; the caller holds the lock."""
    write_whole(home, CONFIG_NAME, raw)
    try:
        note(home, raw)
    except ConfigInvalid as error:
        log.warning(
            "what config.json is now could not be noted, so the history will take it for an edit by hand: %s", error
        )


@dataclass(frozen=True)
class Noted:
    """The config.json that the history has: its digest, and its fields without the owner token, of which a digest is kept.

    `digest` is that of a file which is not valid where such a one came after the fields.
    """

    digest: str
    value: dict[str, Any]
    token: str


def noted(home: Path) -> Noted | None:
    """What was noted last; None before the first time, or where it cannot be read."""
    try:
        return Noted(**json.loads(read_private(home / _NOTED)[0]))
    except (ConfigInvalid, ValueError, TypeError):
        return None


def note(home: Path, raw: bytes) -> None:
    """Note these bytes as those that the history has; the caller holds the lock."""
    before = noted(home)
    try:
        value = with_identity(document_of(raw).value, home)
        parse(value)
        made = Noted(digest_of(raw), without_token(value), token_digest(value))
    except ConfigInvalid:
        made = Noted(digest_of(raw), before.value if before else {}, before.token if before else "")
    if made != before:
        write_whole(home, _NOTED, json.dumps(asdict(made)).encode())


def digest_of(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def without_token(value: dict[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in value.items() if name != "ownerToken"}


def token_digest(value: dict[str, Any]) -> str:
    return digest_of(str(value.get("ownerToken")).encode())


def as_text(value: dict[str, Any]) -> bytes:
    """The document as the file has it."""
    return json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8") + b"\n"


def keep_last_good(home: Path, raw: bytes) -> None:
    """Keep these bytes, which were valid, for `doctor --fix`. Best effort: the state folder may be read-only."""
    try:
        if last_good(home) != raw:
            write_whole(home, LAST_GOOD, raw)
    except ConfigInvalid as error:
        log.warning("the last valid config could not be kept: %s", error.message)


def last_good(home: Path) -> bytes | None:
    """The last valid config.json that this program read or wrote; None when there is none of the owner's own."""
    try:
        return read_private(home / LAST_GOOD)[0]
    except ConfigInvalid:
        return None


def _keep_legacy(home: Path, document: Document) -> None:
    """The older form is kept as it was, once, before the present form takes its place."""
    if document.legacy and not os.path.lexists(home / _LEGACY_COPY):
        write_whole(home, _LEGACY_COPY, document.raw)


def write_whole(home: Path, name: str, raw: bytes) -> None:
    """Temporary file, fsync, rename, fsync of the folder: after any crash the name has the old or the new bytes."""
    temporary: str | None = None
    try:
        fd, temporary = tempfile.mkstemp(prefix=f".{name}-", dir=home)
        with os.fdopen(fd, "wb") as file:
            file.write(raw)
            file.flush()
            sync(fd)
        Path(temporary).replace(home / name)
        temporary = None
        _sync_folder(home)
    except OSError as error:
        raise ConfigInvalid(
            f"{name} cannot be written: {error.strerror}; the file is as it was",
            f"look at the rights and free space of {home}",
        ) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def _sync_folder(home: Path) -> None:
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync(folder)
    finally:
        os.close(folder)
