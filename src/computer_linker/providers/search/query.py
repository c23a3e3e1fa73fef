"""What is asked of a search, what it answers, and the cursor that continues it."""

import base64
import binascii
import hashlib
import json
import os
from dataclasses import dataclass, field

from computer_linker.errors import InvalidRequest

Place = tuple[tuple[bytes, ...], int]
"""A path as bytes, name by name, and a line in it: the order in which answers come."""


@dataclass(frozen=True, slots=True)
class Breadth:
    """Which files are looked at."""

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
        return _digest(self.pattern, self.breadth, self.ignore_case, self.fixed_strings)


@dataclass(frozen=True, slots=True)
class NameQuery:
    """A glob to find among file names."""

    breadth: Breadth

    def digest(self) -> str:
        return _digest(self.breadth)


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
    def place(self) -> Place:
        return place_of(self.path, self.line)


@dataclass(slots=True)
class TextPage:
    """One page of hits in order, and where the next one starts."""

    hits: list[Hit]
    engine: str
    next_place: Place | None = None
    binary_files: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class NamePage:
    """One page of paths in order, and where the next one starts."""

    paths: list[bytes]
    engine: str
    next_place: Place | None = None


class LinesTooLong(Exception):
    """ripgrep ran out of its memory allowance: some file has a line that cannot be held."""


class StoodStill(Exception):
    """ripgrep waited for something that never answers, such as a pipe that is called .gitignore."""


def place_of(path: bytes, line: int) -> Place:
    return tuple(path.split(b"/")), line


def shown(path: bytes) -> str:
    """A path for an answer; bytes that are not UTF-8 are shown escaped."""
    return path.decode("utf-8", "backslashreplace")


def to_cursor(place: Place, digest: str) -> str:
    """An opaque token that continues after `place`, for the same query only."""
    path = b"/".join(place[0]).decode("utf-8", "surrogateescape")
    raw = json.dumps([path, place[1], digest]).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def from_cursor(cursor: str | None, digest: str) -> Place | None:
    """The place a cursor names. Raises InvalidRequest for one that is not of this query."""
    if cursor is None:
        return None
    try:
        path, line, given = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        place = place_of(os.fsencode(path), int(line))
    except (ValueError, TypeError, AttributeError, binascii.Error, RecursionError) as error:
        raise InvalidRequest("The cursor is not one of this service.", field="cursor") from error
    if given != digest:
        raise InvalidRequest("The cursor belongs to another query; leave it out to start again.", field="cursor")
    return place


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
