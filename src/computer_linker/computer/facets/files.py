"""The files facet: reading and changing the files beneath a scope's root."""

import hashlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NotRequired, Protocol

from typing_extensions import TypedDict

from computer_linker.errors import Conflict
from computer_linker.model.paths import RootedPath

FileType = Literal["file", "directory", "symlink", "other"]
Gate = Callable[[], Awaitable[None]]
"""Awaited after everything is prepared and before anything is changed."""
Beside = Callable[[Callable[[], None]], Awaitable[None]]
"""Runs a sync in a thread that already waits for the disk."""
Content = bytes | Callable[[], Iterator[bytes]]
"""What to write: bytes, or a function that yields them in pieces, so that a large text is never in memory twice."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """Content that arrives beside its request, held to the size and the digest that the request names."""

    pieces: Callable[[], Iterator[bytes]]
    size: int | None = None
    sha256: str | None = None

    def __call__(self) -> Iterator[bytes]:
        """The pieces. Raises Conflict, before the last one counts as written, when they are not what was named."""
        digest, size = hashlib.sha256(), 0
        for piece in self.pieces():
            size += len(piece)
            if self.size is not None and size > self.size:
                break
            digest.update(piece)
            yield piece
        if size != (size if self.size is None else self.size) or self.sha256 not in (None, digest.hexdigest()):
            raise Conflict(
                "The content that arrived is not the content that the request names, so nothing was written."
            )


@dataclass(frozen=True, slots=True)
class Stat:
    """The metadata of one name; of the link itself where it is a symbolic link."""

    type: FileType
    size: int
    modified_ns: int
    mode: int
    links: int
    device: int
    inode: int

    @property
    def mark(self) -> "Mark":
        return Mark(self.device, self.inode, self.size, self.modified_ns)


@dataclass(frozen=True, slots=True)
class Mark:
    """The identity of one state of a file. Of a folder only device and inode count."""

    device: int
    inode: int
    size: int = -1
    modified_ns: int = -1

    def fits(self, stat: Stat | None) -> bool:
        """True when `stat` shows exactly this state."""
        if stat is None or (stat.device, stat.inode) != (self.device, self.inode):
            return False
        return self.size < 0 or (stat.size, stat.modified_ns) == (self.size, self.modified_ns)

    def to_list(self) -> list[int]:
        return [self.device, self.inode, self.size, self.modified_ns]


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a file that is wanted: from a byte, from a line, or its last lines; at most `max_bytes`."""

    max_bytes: int
    start_byte: int | None = None
    start_line: int | None = None
    line_count: int | None = None
    tail_lines: int | None = None
    is_text: bool = True
    """Text is cut after a whole line where that is possible, and never inside a character."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a file, and the position where the next part starts."""

    content: bytes
    size: int
    sha256: str | None
    start_line: int | None
    next_line: int | None
    next_byte: int | None
    links: int
    warnings: tuple[str, ...] = ()


class ListedEntry(TypedDict):
    name: str
    path: NotRequired[str]
    type: NotRequired[str]
    size: NotRequired[int]
    modifiedAt: NotRequired[str]


EntryField = Literal["name", "path", "type", "size", "modifiedAt"]


class TreeEntry(TypedDict):
    path: str
    type: str
    size: int


@dataclass(frozen=True, slots=True)
class Listing:
    """Entries of one folder by name; `next_name` is where the next page starts after."""

    entries: list[ListedEntry]
    next_name: str | None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tree:
    """Everything beneath a folder, level by level, by name inside a folder."""

    entries: list[TreeEntry]
    is_truncated: bool
    warnings: tuple[str, ...] = ()
    last: tuple[str, ...] | None = None
    """The names, below the folder, of the last entry of a truncated tree: the next page starts after it."""


@dataclass(frozen=True, slots=True)
class Write:
    """Make `path` a regular file with this content; the old file stays whole until the new one is."""

    path: RootedPath
    content: Content
    must_be_new: bool = False
    append: bool = False
    create_parents: bool = False
    if_sha256: str | None = None
    expect: Mark | None = None
    """The state that was read before; anything else now is a conflict."""
    is_executable: bool | None = None


@dataclass(frozen=True, slots=True)
class MakeFolder:
    """Create a folder; one that exists stays, with the mode, time and attributes that are given."""

    path: RootedPath
    parents: bool = False
    mode: int | None = None
    modified_ns: int | None = None
    attributes: tuple[tuple[str, bytes | None], ...] = ()
    """Extended attributes of the user's to set, or with None to remove."""


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove a file, a link or (with `recursive`) a folder."""

    path: RootedPath
    recursive: bool = False
    expect: Mark | None = None
    only_if_empty: bool = False
    """For a folder created as a missing parent: leave it when it is not empty now."""


@dataclass(frozen=True, slots=True)
class Move:
    path: RootedPath
    destination: RootedPath
    overwrite: bool = False
    create_parents: bool = False
    expect: Mark | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    path: RootedPath
    destination: RootedPath
    overwrite: bool = False
    create_parents: bool = False


@dataclass(frozen=True, slots=True)
class Restore:
    """Restore what a keeper stored. `expect` is the state to replace; None means the name must be free."""

    path: RootedPath
    kept: str
    expect: Mark | None = None


Change = Write | MakeFolder | Remove | Move | Copy | Restore


class Inverse(TypedDict, total=False):
    """One step that reverts a change, as plain JSON values."""

    do: Literal["remove", "restore", "rmdir", "mkdir", "move"]
    root: str
    path: list[str]
    to: list[str]
    toRoot: str
    kept: str
    after: list[int]
    """The mark after the change; a different state now means that it was changed since."""
    bytes: int
    mode: int
    modified: int
    attributes: dict[str, str | None]
    """Extended attributes of a folder, in base64; None for one that it had not."""


@dataclass(slots=True)
class Changed:
    """The result of one change."""

    path: RootedPath
    action: Literal["created", "modified", "deleted", "moved", "copied", "unchanged"]
    size: int = 0
    sha256: str | None = None
    entries: int = 1
    is_confirmed: bool = False
    is_undoable: bool = True
    is_same: bool = False
    """True for a write that is known to have replaced a file by an equal one."""
    warnings: list[str] = field(default_factory=list)


class Keeper(Protocol):
    """Stores what a change replaces, so that the change can be reverted."""

    @property
    def folder(self) -> int:
        """The descriptor of a private folder for kept files."""
        ...

    @property
    def room(self) -> int:
        """How many bytes one operation may keep."""
        ...

    def new_name(self) -> str:
        """A fresh name in the folder."""
        ...

    def begun(self, steps: list[Inverse], leftovers: list[dict[str, Any]]) -> None:
        """Called just before the first change: the steps that revert all of it, and temporaries to remove."""
        ...

    def done(self) -> None: ...

    def void(self) -> None:
        """Called when nothing was changed after all."""
        ...


class Files(Protocol):
    """Files beneath a root. Every path is resolved beneath its root by the system, never by comparing names."""

    def protect(self, state: Path) -> None:
        """Never open the service's own state through a scope that happens to contain it."""
        ...

    async def stat(self, path: RootedPath) -> Stat:
        """The metadata of the name itself: a link is reported as a link."""
        ...

    async def sha256(self, path: RootedPath) -> str:
        """The digest of a whole regular file."""
        ...

    async def read(self, path: RootedPath, window: Window) -> Piece: ...

    async def read_whole(self, path: RootedPath, limit: int) -> tuple[bytes, Stat]:
        """All of a regular file. Raises LimitExceeded when it is larger than `limit`."""
        ...

    async def list_folder(
        self,
        path: RootedPath,
        *,
        max_results: int,
        include_hidden: bool = True,
        after: str | None = None,
        fields: list[EntryField] | None = None,
    ) -> Listing:
        """One page of a folder; `fields` are what is wanted of each entry, and None is all."""
        ...

    async def tree(
        self,
        path: RootedPath,
        *,
        max_depth: int,
        max_entries: int,
        gitignore: bool,
        max_bytes: int = 7_000_000,
        after: tuple[str, ...] | None = None,
    ) -> Tree: ...

    async def change(
        self, changes: Sequence[Change], *, gate: Gate, keeper: Keeper | None = None, beside: Beside | None = None
    ) -> list[Changed]:
        """Make all of these changes or none: prepare everything, await `gate`, then change.

        A machine may use `beside` for a sync it needs, so that it and the gate are one wait.
        """
        ...

    async def rehearse(self, changes: Sequence[Change], *, keeper: Keeper | None = None) -> None:
        """Raise what `change` would raise while preparing; changes nothing."""
        ...

    def open_file(self, path: RootedPath) -> int:
        """A held descriptor of a regular file (the caller closes it), to stream it from a worker thread. Local machines only."""
        ...

    def open_folder(self, path: RootedPath) -> int:
        """A held descriptor of a folder (the caller closes it), to start a program in. Local machines only."""
        ...
