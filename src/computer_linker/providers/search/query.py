"""Search queries, result pages, and the cursor that continues a search."""

import base64
import binascii
import hashlib
import json
import os
from dataclasses import dataclass, field

from computer_linker.errors import InvalidRequest

Position = tuple[tuple[bytes, ...], int]
"""A path as byte components, and a line in it: the order of results."""


@dataclass(frozen=True, slots=True)
class Breadth:
    """Which files are searched."""

    glob: str | None = None
    include_hidden: bool = False
    gitignore: bool = True


@dataclass(frozen=True, slots=True)
class TextQuery:
    """A pattern to find in files."""

    pattern: str
    breadth: Breadth = Breadth()
    ignore_case: bool = False
    fixed_strings: bool = False
    before: int = 0
    after: int = 0

    def digest(self) -> str:
        return digest_of(self.pattern, self.breadth, self.ignore_case, self.fixed_strings)


@dataclass(frozen=True, slots=True)
class NameQuery:
    """A glob to find among file names."""

    breadth: Breadth

    def digest(self) -> str:
        return digest_of(self.breadth)


@dataclass(slots=True)
class Hit:
    """One matching line."""

    path: bytes
    line: int
    column: int
    preview: str
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    @property
    def position(self) -> Position:
        return position_of(self.path, self.line)


@dataclass(slots=True)
class TextPage:
    """One ordered page of hits, and where the next one starts."""

    hits: list[Hit]
    next_position: Position | None = None
    binary_files: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class NamePage:
    """One ordered page of paths, and where the next one starts."""

    paths: list[bytes]
    next_position: Position | None = None


class Unreadable(Exception):
    """ripgrep failed on the tree: a line too long for memory, or a .gitignore that is endless or a pipe."""


def position_of(path: bytes, line: int) -> Position:
    return tuple(path.split(b"/")), line


def shown(path: bytes) -> str:
    """A path for results; bytes that are not UTF-8 are escaped."""
    return path.decode("utf-8", "backslashreplace")


def to_cursor(position: Position, digest: str) -> str:
    """An opaque token that continues after `place`, for the same query only."""
    path = b"/".join(position[0]).decode("utf-8", "surrogateescape")
    raw = json.dumps([path, position[1], digest]).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def from_cursor(cursor: str | None, digest: str) -> Position | None:
    """The position of a cursor. Raises InvalidRequest for one of another query."""
    if cursor is None:
        return None
    try:
        path, line, given = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        position = position_of(os.fsencode(path), int(line))
    except (ValueError, TypeError, AttributeError, binascii.Error, RecursionError) as error:
        raise InvalidRequest("The cursor is not one of this service.", field="cursor") from error
    if given != digest:
        raise InvalidRequest("The cursor belongs to another query; leave it out to start again.", field="cursor")
    return position


def digest_of(*parts: object) -> str:
    """What a cursor belongs to, in a few characters."""
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


# Checks a caller's glob before ripgrep parses it; ripgrep itself refuses a malformed one.

_MAX_GLOB = 512
_MAX_GROUPS = 8


def check_glob(pattern: str) -> None:
    """Refuse a glob that is empty, too long, contains `..`, or has groups that multiply."""
    if not pattern.removeprefix("!") or len(pattern) > _MAX_GLOB or any(char in pattern for char in "\0\n\r"):
        raise InvalidRequest(f"A glob has 1 to {_MAX_GLOB} characters on one line.", field="glob")
    if ".." in pattern.split("/"):
        raise InvalidRequest("A glob cannot contain `..`.", field="glob")
    if pattern.count("{") > _MAX_GROUPS:
        raise InvalidRequest(f"A glob has at most {_MAX_GROUPS} groups in braces.", field="glob")


def is_everything(pattern: str) -> bool:
    """True for a glob that matches everything."""
    return pattern in ("*", "**", "**/*", "/**", "./**", "**/**")


def escaped(name: str) -> str:
    """A glob that matches exactly this name."""
    return "".join("\\" + char if char in "*?[]{}\\!#, " else char for char in name)
