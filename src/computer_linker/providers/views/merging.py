"""Text that a view and the folder both changed: what it was before either, and the merge of both."""

import contextlib
import secrets
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from computer_linker.changes.difference import MAX_BYTES
from computer_linker.changes.merge import merged
from computer_linker.providers.views.changes import ViewChange
from computer_linker.providers.views.names import Entry, Parts, as_entry, open_file, open_folder
from computer_linker.system import os

_MAX_BASES = 5000
_MAX_STORED = 64 << 20
_MERGE_S = 2.0
_ANY_TIME = 1 << 63


@dataclass(frozen=True, slots=True)
class MergedText:
    """A text with the changes of both sides."""

    content: bytes
    mode: int


def remember(store: int, lower: int, changes: Iterable[ViewChange], base_ns: int) -> None:
    """Copy the present text of the files that a view changes, as long as it is what the program saw.

    Called when a program in the view has ended; a file that the folder's owner changes later can then be merged.
    """
    folder = open_folder(store, "base")
    try:
        known = set(os.listdir(folder))  # an open folder has no path
        size = 0
        for change in changes:
            before, after = change.before, change.after
            if before is None or after is None or change.is_conflict or {before.kind, after.kind} != {"file"}:
                continue
            name, size = name_of(change.source or change.parts), size + before.size
            if len(known) >= _MAX_BASES or size > _MAX_STORED:
                return
            if name not in known and before.size <= MAX_BYTES:
                known.add(name)
                _store(folder, name, lower, change.source or change.parts, base_ns)
    finally:
        os.close(folder)


def rebase(store: int, lower: int, kept: Iterable[ViewChange]) -> None:
    """Store what was just put in place as what the programs of the view see from now on."""
    folder = open_folder(store, "base")
    try:
        for change in kept:
            name = name_of(change.parts)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
            if change.after is not None and change.after.kind == "file" and change.after.size <= MAX_BYTES:
                _store(folder, name, lower, change.parts, base_ns=_ANY_TIME)
    finally:
        os.close(folder)


def _store(folder: int, name: str, lower: int, parts: Parts, base_ns: int) -> None:
    found = _read(lower, parts)
    if found is None or found[1].changed_ns > base_ns:
        return
    content, entry = found
    draft = secrets.token_hex(8)
    opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    with os.fdopen(opened, "wb") as file:
        file.write(content)
        file.flush()
        os.fchmod(file.fileno(), entry.mode)
        os.utime(file.fileno(), ns=(entry.modified_ns, entry.modified_ns))
    # Whole or absent: a part of a text would be merged as if the rest had been removed.
    os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)


def merge(store: int, upper: int, lower: int, change: ViewChange) -> MergedText | None:
    """The merge of a file that both sides changed; None where it cannot be merged, or is no longer what was compared."""
    before, after = change.before, change.after
    if not change.is_conflict or before is None or after is None or change.source is not None:
        return None
    if {before.kind, after.kind} != {"file"}:
        return None
    folder = open_folder(store, "base")
    try:
        base = _read(folder, (name_of(change.parts),))
    finally:
        os.close(folder)
    ours, theirs = _read(upper, change.parts), _read(lower, change.parts)
    if base is None or ours is None or theirs is None or ours[1] != after or theirs[1] != before:
        return None
    content = merged(base[0], ours[0], theirs[0], time.monotonic() + _MERGE_S)
    if content is None:
        return None
    return MergedText(content, before.mode if base[1].mode == after.mode else after.mode)


def is_as_it_was(store: int, lower: int, change: ViewChange) -> bool:
    """True for a file with a newer change time whose content and mode are those that the program saw.

    A hard link of it changes its change time too, such as the undo journal's.
    """
    before = change.before
    if before is None or before.kind != "file" or before.size > MAX_BYTES:
        return False
    parts = change.source or change.parts
    folder = open_folder(store, "base")
    try:
        base = _read(folder, (name_of(parts),))
    finally:
        os.close(folder)
    theirs = None if base is None else _read(lower, parts)
    if base is None or theirs is None:
        return False
    return base[0] == theirs[0] and base[1].mode == theirs[1].mode and base[1].modified_ns == theirs[1].modified_ns


def name_of(parts: Parts) -> str:
    """The name under which the base of a path is stored."""
    return sha256(os.fsencode("/".join(parts))).hexdigest()


def _read(folder: int, parts: Parts) -> tuple[bytes, Entry] | None:
    """The content and the entry of a small regular file; None for anything else, or what changes while it is read."""
    try:
        opened = open_file(folder, parts)
    except OSError:
        return None
    with os.fdopen(opened, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES:
            return None
        content = file.read(MAX_BYTES + 1)
        if as_entry(os.fstat(file.fileno())) != as_entry(found) or len(content) != found.st_size:
            return None
    return content, as_entry(found)
