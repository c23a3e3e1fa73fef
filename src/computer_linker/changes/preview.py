"""The preview of file changes for an approver, derived from the changes themselves."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256

from anyio.to_thread import run_sync

from computer_linker.approvals.request import Preview
from computer_linker.changes.difference import MAX_SHOWN, State, diff_lines, digests
from computer_linker.changes.fingerprints import MISSING, Fingerprints
from computer_linker.computer.facets.files import (
    Change,
    Copy,
    Files,
    MakeFolder,
    Move,
    Remove,
    Restore,
    Streamed,
    Write,
)
from computer_linker.errors import AlreadyExists, LimitExceeded, LinkError, NotFound
from computer_linker.model.paths import RootedPath
from computer_linker.policy.digest import digest_of_parts

_MAX_READ = 20_000_000
_MAX_TOTAL = 100_000_000
_COMPARE_S = 1.0
"""For all files of one question together."""
_VERBS = {MakeFolder: "makes the folder", Move: "moves", Copy: "copies", Restore: "restores", Remove: "removes"}


async def preview(files: Files, changes: Sequence[Change], *, is_whole: bool = False) -> Preview:
    """Show each path with its change: text as a diff, other removed or replaced files by digest.

    `is_whole` where the request itself does not have the contents: then no part of a difference is left out.

    An approval is bound to every path's state now together with what it would become.
    """
    seen = _Preview(files, is_whole)
    for change in changes:
        await seen.add(change)
    # Of several changes one may make what the next one needs.
    in_its_path = await obstacle(files, changes[0]) if len(changes) == 1 else None
    lines = tuple(seen.prints.lines) or ("It changes no file.",)
    kinds = frozenset(map(_kind, changes))
    return Preview(
        lines, seen.holds, obstacle=in_its_path, paths=tuple(seen.holds), kinds=kinds, is_once=seen.is_unseen
    )


async def obstacle(files: Files, change: Change) -> LinkError | None:
    """Why this change alone would fail as things are: what it needs is missing, or its name is taken."""
    needed: list[RootedPath] = []
    free: RootedPath | None = None
    match change:
        case Write():
            needed = [] if change.create_parents else [change.path.parent]
            free = change.path if change.must_be_new else None
        case MakeFolder():
            needed = [] if change.parents else [change.path.parent]
        case Move() | Copy():
            needed = [change.path, *([] if change.create_parents else [change.destination.parent])]
            free = None if change.overwrite else change.destination
    try:
        for path in needed:
            await files.stat(path)
    except NotFound as error:
        return error
    if free is None:
        return None
    with suppress(NotFound):
        await files.stat(free)
        return AlreadyExists(f"{free.shown} already exists.", path=free.shown)
    return None


@dataclass
class _Preview:
    files: Files
    is_whole: bool
    prints: Fingerprints = field(init=False)
    holds: dict[str, str] = field(default_factory=dict)
    is_unseen: bool = False
    _room: int = _MAX_TOTAL
    _until: float = field(default_factory=lambda: time.monotonic() + _COMPARE_S)

    def __post_init__(self) -> None:
        self.prints = Fingerprints(self.files)

    async def add(self, change: Change) -> None:
        if isinstance(change, Write):
            await self._write(change)
        elif not (isinstance(change, Remove) and await self._removed_file(change)):
            await self.prints.add(change.path, _VERBS[type(change)])
        self._hold(change.path, change)
        if isinstance(change, Move | Copy):
            await self.prints.add(change.destination, "to")
            self._hold(change.destination, change)

    async def _write(self, change: Write) -> None:
        shown, content = change.path.shown, change.content
        if not isinstance(content, bytes):
            self.prints.lines.append(f"{shown}: {self._unread(content)}")
            await self.prints.add(change.path, "replaces")
            return
        try:
            before = await self._now(change.path)
        except LimitExceeded:
            found = await self.files.stat(change.path)
            then = f"{len(content)} bytes are put after it" if change.append else f"becomes {len(content)} bytes"
            self.prints.lines.append(f"{shown}: {found.size} bytes now, too many to compare; {then}")
            self.prints.holds[shown] = digest_of_parts(repr(found.mark))
            return
        await self._compare(change.path, before, (before or b"") + content if change.append else content)

    def _unread(self, content: object) -> str:
        """What is known of content that is not shown."""
        if not isinstance(content, Streamed):
            return "its content is too long to be shown here; the exact request has it."
        size = "of unknown size" if content.size is None else f"{content.size} bytes"
        if content.sha256 is not None:
            return f"its content comes beside the request and cannot be seen here: {size}, sha256 {content.sha256}"
        self.is_unseen = True
        return f"its content comes beside the request and cannot be seen here: {size}, without a digest. It may be anything."

    async def _removed_file(self, change: Remove) -> bool:
        """Show a removed file by its content; False for a folder, which is fingerprinted instead."""
        path = change.path
        found = await self.files.stat(path)
        if found.type == "directory":
            return False
        if found.type != "file" or found.size > min(_MAX_READ, self._room):
            self.prints.lines.append(f"{path.shown}: a {found.type} of {found.size} bytes")
            self.prints.holds[path.shown] = digest_of_parts(repr(found.mark))
            return True
        await self._compare(path, await self._now(path), None)
        return True

    async def _compare(self, path: RootedPath, before: bytes | None, after: bytes | None) -> None:
        if sum(map(len, self.prints.lines)) > MAX_SHOWN:
            was, then = (None if content is None else State.of(content) for content in (before, after))
            shown = digests(path.shown, was, then)
        else:
            compare = partial(diff_lines, until=self._until, is_whole=self.is_whole)
            shown = await run_sync(compare, path.shown, before, after)
        self.prints.lines += shown
        self.prints.holds[path.shown] = MISSING if before is None else sha256(before).hexdigest()

    async def _now(self, path: RootedPath) -> bytes | None:
        try:
            content = (await self.files.read_whole(path, min(_MAX_READ, self._room)))[0]
        except NotFound:
            return None
        self._room -= len(content)
        return content

    def _hold(self, path: RootedPath, change: Change) -> None:
        """Bind the approval to the path's state and to this change of it, also where a path is changed twice."""
        state = self.prints.holds[path.shown]
        self.holds[path.shown] = digest_of_parts(self.holds.get(path.shown, ""), state, *_parts(change))


def _kind(change: Change) -> str:
    """What a change does, with the options by which it does more."""
    match change:
        case Write():
            return "writes programs" if change.is_executable else "writes"
        case Move() | Copy():
            return f"{_VERBS[type(change)]}{' over others' if change.overwrite else ''}"
        case Remove():
            return "removes folders" if change.recursive else "removes"
        case MakeFolder():
            return "makes folders"
        case Restore():
            return "restores"


def _parts(change: Change) -> list[str]:
    """What a change does to its path; not which state it was made for, as the state itself is bound."""
    match change:
        case Write(content=bytes(content)):
            return ["write", sha256(content).hexdigest(), repr((change.append, change.is_executable))]
        case Write(content=Streamed() as content):
            return ["write", repr((content.size, content.sha256)), repr((change.append, change.is_executable))]
        case Restore():
            return ["restore", change.kept]
        case Move() | Copy():
            return [_VERBS[type(change)], change.path.shown, change.destination.shown]
        case _:
            return [type(change).__name__]
