"""Read config.json: private, strict, whole. A file that does not validate is refused, never replaced or partly used."""

import errno
import platform
import secrets
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from computer_linker.config.migrate import is_legacy, modernised
from computer_linker.config.positions import Positions, line_and_column, scan, syntax_problem
from computer_linker.config.private import check_folder, check_owner
from computer_linker.config.schema import SCHEMA_VERSION, Config
from computer_linker.errors import ConfigInvalid, InvalidRequest, Problem
from computer_linker.model.json_text import read_json
from computer_linker.system import os

_ID_FILE = "machine-id"


def new_machine_id() -> str:
    """A fresh identity, not derived from hardware, so that it reveals nothing about the machine."""
    return f"machine-{secrets.token_hex(16)}"


def machine_name() -> str:
    """Return this computer's host name."""
    return platform.node().split(".")[0][:128] or "this computer"


def with_identity(value: dict[str, Any], home: Path) -> dict[str, Any]:
    """The document with the identity a hand-written file may leave out. The file itself is not touched."""
    named = dict(value)
    if "machineId" not in named:
        named["machineId"] = remembered_id(home)
    named.setdefault("machineName", machine_name())
    return named


def remembered_id(home: Path) -> str:
    """The identity kept beside a config file that has none; made on first use."""
    path = home / _ID_FILE
    try:
        return _read_id(path)
    except FileNotFoundError:
        pass
    made = new_machine_id()
    try:
        return _keep_id(path, made)
    except OSError as error:
        raise ConfigInvalid(
            f"config.json: `machineId` is needed, and none can be kept beside it ({error.strerror})",
            "add a machineId, or make the state folder writable",
        ) from error


def _keep_id(path: Path, made: str) -> str:
    """Store the new identity unless another process was first. Linking publishes the file only when it is complete."""
    fd, temporary = tempfile.mkstemp(prefix=".machine-id-", dir=path.parent)
    try:
        with os.fdopen(fd, "w", encoding="ascii") as file:
            file.write(made + "\n")
        os.link(temporary, path)
    except FileExistsError:
        return _read_id(path)
    finally:
        Path(temporary).unlink()
    return made


def _read_id(path: Path) -> str:
    text = path.read_text("ascii", errors="replace").strip()
    if not text:
        raise ConfigInvalid(f"{_ID_FILE} in the state folder is empty", f"remove {path}")
    return text[:128]


CONFIG_NAME = "config.json"
MAX_BYTES = 1_000_000
Check = Callable[[Config], list[str]]
"""An additional check by a package that config does not import: it returns problems as sentences."""


@dataclass(frozen=True)
class Document:
    """The file as read: its values in the present form, and the file's version stamp."""

    value: dict[str, Any]
    legacy: bool
    raw: bytes
    stamp: tuple[int, ...]

    @property
    def positions(self) -> Positions | None:
        """Where each field is; None for the older form, whose fields have other names."""
        return None if self.legacy else scan(_text_of(self.raw))


def load(home: Path, check: Check | None = None) -> Config:
    """The config of this state folder. Raises ConfigInvalid with one sentence that names the field."""
    return validated(read_document(home), home, check)


def read_document(home: Path) -> Document:
    """The file's JSON, from a file that only its owner can have written."""
    return document_of(*read_file(home))


def read_file(home: Path) -> tuple[bytes, tuple[int, ...]]:
    """The file's bytes and version stamp. Raises ConfigInvalid unless it is the owner's alone."""
    check_folder(home)
    return read_private(home / CONFIG_NAME)


def document_of(raw: bytes, stamp: tuple[int, ...] = ()) -> Document:
    """The file's JSON. Raises ConfigInvalid with the place where it is not JSON."""
    try:
        value = read_json(raw.removeprefix(b"\xef\xbb\xbf"))
    except InvalidRequest as error:
        raise ConfigInvalid.of(_unreadable(raw, error.message), CORRECT) from None
    if not isinstance(value, dict):
        raise ConfigInvalid.of([Problem((), "must be an object", "syntax", 1, 1)], CORRECT)
    return Document(modernised(value), is_legacy(value), raw, stamp)


def _unreadable(raw: bytes, reason: str) -> list[Problem]:
    text = _text_of(raw)
    syntax = syntax_problem(text)
    if syntax is not None:
        return [syntax]
    doubled = [
        Problem(path, "is a doubled key", "syntax", *line_and_column(text, at)) for path, at in scan(text).doubled
    ]
    sentence = reason.replace("The message", "the file").rstrip(".")
    return doubled or [Problem((), f"cannot be read: {sentence}", "syntax")]


def _text_of(raw: bytes) -> str:
    return raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")


def validated(document: Document, home: Path, check: Check | None = None) -> Config:
    """The document as a Config."""
    version = document.value.get("schemaVersion", SCHEMA_VERSION)
    if isinstance(version, int) and version > SCHEMA_VERSION:
        newer = f"`schemaVersion` {version} is newer than this program supports"
        raise ConfigInvalid(f"config.json: {newer}", "update Computer Linker")
    config = parse(with_identity(document.value, home), document)
    problems = check(config) if check is not None else []
    if problems:
        raise ConfigInvalid.of([Problem((), problem.rstrip("."), "check") for problem in problems], CORRECT)
    return config


def parse(value: dict[str, Any], document: Document | None = None) -> Config:
    """The typed config. Raises ConfigInvalid naming every field that does not fit, with its place in the `document`."""
    try:
        return Config.from_wire(value)
    except ValidationError as error:
        from computer_linker.config.problems import problems_in

        positions = document.positions if document is not None else None
        raise ConfigInvalid.of(problems_in(error, value, positions), CORRECT) from None


def stamp_of(found: os.stat_result) -> tuple[int, ...]:
    """Return a version stamp of the file, permissions included."""
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_mode, found.st_uid)


CORRECT = "computer-linker doctor --fix repairs what it can; else correct the file, which was not changed"
BY_HAND = "correct the file, which was not changed; computer-linker config validate checks it again"


def read_private(path: Path) -> tuple[bytes, tuple[int, ...]]:
    """The bytes and version stamp of a file of the owner's own. Raises ConfigInvalid for any other."""
    # Opened once, without following a link, and judged by its descriptor: what was checked is what is read.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        fd = os.open(path, flags)
    except FileNotFoundError:
        raise ConfigInvalid(
            "this computer is not set up yet: there is no config.json in the state folder",
            "run: computer-linker setup",
        ) from None
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise ConfigInvalid(f"config.json cannot be opened: {reason}", f"look at {path}") from error
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise ConfigInvalid("config.json is not a regular file", f"look at {path}")
        check_owner(found, "config.json", f"chmod 600 {path}")
        if found.st_nlink > 1:
            # A second hard link may lie in a folder that clients can read or write.
            raise ConfigInvalid("config.json has a second name (a hard link)", f"find it with: find / -samefile {path}")
        raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise ConfigInvalid(f"config.json is larger than {MAX_BYTES} bytes", f"look at {path}")
    return raw, stamp_of(found)
