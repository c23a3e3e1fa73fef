"""Read config.json: private, strict, whole. A file that does not validate is refused, never replaced or partly used."""

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from computer_linker.config.machine import with_identity
from computer_linker.config.migrate import is_legacy, modernised
from computer_linker.config.private import check_folder, check_owner
from computer_linker.config.schema import SCHEMA_VERSION, Config
from computer_linker.errors import ConfigInvalid, InvalidRequest
from computer_linker.model.json_text import read_json

CONFIG_NAME = "config.json"
MAX_BYTES = 1_000_000
Check = Callable[[Config], list[str]]
"""More to check, by a part that config does not know: the sentences it answers are problems."""


@dataclass(frozen=True)
class Document:
    """The file as it was read: its values in the present form, and which file exactly that was."""

    value: dict[str, Any]
    legacy: bool
    raw: bytes
    stamp: tuple[int, ...]


def load(home: Path, check: Check | None = None) -> Config:
    """The config of this state folder. Raises ConfigInvalid with one sentence that names the field."""
    return validated(read_document(home), home, check)


def read_document(home: Path) -> Document:
    """The file's JSON, from a file that only its owner can have written."""
    check_folder(home)
    raw, stamp = _read_private(home / CONFIG_NAME)
    try:
        value = read_json(raw.removeprefix(b"\xef\xbb\xbf"))
    except InvalidRequest as error:
        reason = error.message.replace("The message", "the file").rstrip(".")
        raise ConfigInvalid(f"config.json cannot be read: {reason}", _CORRECT) from None
    if not isinstance(value, dict):
        raise ConfigInvalid("config.json must be an object", _CORRECT)
    return Document(modernised(value), is_legacy(value), raw, stamp)


def validated(document: Document, home: Path, check: Check | None = None) -> Config:
    """The document as a Config."""
    version = document.value.get("schemaVersion", SCHEMA_VERSION)
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise ConfigInvalid(
            f"config.json: `schemaVersion` {version} is newer than this program knows", "update Computer Linker"
        )
    config = parse(with_identity(document.value, home))
    problems = check(config) if check is not None else []
    if problems:
        raise ConfigInvalid(f"config.json: {problems[0].rstrip('.')}", _CORRECT)
    return config


def parse(value: dict[str, Any]) -> Config:
    """The typed config. Raises ConfigInvalid naming the first field that does not fit; values are never repeated."""
    try:
        return Config.from_wire(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        problem = _problem(first["type"], first["msg"])
        raise ConfigInvalid(
            f"config.json: `{field}` {problem}" if field else f"config.json: {problem}", _CORRECT
        ) from None


def stamp_of(found: os.stat_result) -> tuple[int, ...]:
    """What tells one version of the file from another, its rights included."""
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_mode, found.st_uid)


_CORRECT = "correct the file; nothing was changed. computer-linker config validate checks it again"


def _read_private(path: Path) -> tuple[bytes, tuple[int, ...]]:
    # Opened once, without following a link, and judged by its descriptor: what was checked is what is read.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        fd = os.open(path, flags)
    except FileNotFoundError:
        raise ConfigInvalid("there is no config.json in the state folder", "run: computer-linker setup") from None
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise ConfigInvalid(f"config.json cannot be opened: {reason}", f"look at {path}") from error
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise ConfigInvalid("config.json is not a regular file", f"look at {path}")
        check_owner(found, "config.json", f"chmod 600 {path}")
        if found.st_nlink > 1:
            # Another name may lie in a folder that clients can read or write.
            raise ConfigInvalid("config.json has a second name (a hard link)", f"find it with: find / -samefile {path}")
        raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise ConfigInvalid(f"config.json is larger than {MAX_BYTES} bytes", f"look at {path}")
    return raw, stamp_of(found)


def _problem(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return "is not a field of the config"
    if kind == "missing":
        return "is needed"
    text = message.removeprefix("Value error, ").rstrip(".")
    return text[:1].lower() + text[1:]
