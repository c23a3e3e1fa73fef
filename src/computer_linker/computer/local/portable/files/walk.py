"""Listing: one folder by pages, a tree level by level; names only, no link is followed and no content read."""

import stat as modes
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import nsmallest
from typing import cast

from computer_linker.computer.facets.files import EntryField, ListedEntry, Listing, Tree, TreeEntry
from computer_linker.computer.facets.lines import MAX_REPLY
from computer_linker.computer.gitignore import IgnoreFile, is_ignored, parse_ignore
from computer_linker.computer.local.portable.files.open import FOLDER, READ, Opener, type_of
from computer_linker.errors import Aborted, LimitExceeded, LinkError, NotFound
from computer_linker.home import MARK_NAME
from computer_linker.model.paths import PathRules, RootedPath
from computer_linker.model.times import shown_ns
from computer_linker.policy.names import is_sensitive
from computer_linker.policy.paths import is_denied
from computer_linker.system import os

TEMPORARY = ".~cl-"
"""The prefix of this service's temporary files; they are never listed."""
_MAX_IGNORE_FILE = 1 << 20
_LONGEST = 4 * 255 + 170
_MOST_SKIPPED = 500_000
_LOOKED_AT: frozenset[EntryField] = frozenset({"size", "modifiedAt"})
"""What only a look at the file itself gives; its name and type are in the folder."""
_NONE_NEW = "\U0010ffff"
"""Comes after every name."""
Halted = Callable[[], bool]


def list_folder(
    opener: Opener,
    path: RootedPath,
    *,
    max_results: int,
    include_hidden: bool,
    after: str | None,
    fields: list[EntryField] | None = None,
) -> Listing:
    """One page of a folder's entries, by name."""
    with _folder(opener, path) as (descriptor, real):
        found = _found(descriptor, max_results + 1, include_hidden=include_hidden, after=after, real=real)
        page = _fitting(found[:max_results], len(path.base))
        is_short = fields is not None and _LOOKED_AT.isdisjoint(fields)
        entries, odd = (_named if is_short else _listed)(page, path.base, fields)
    warnings = (_odd_names(odd),) if odd else ()
    return Listing(entries, page[-1].name if len(found) > len(page) else None, warnings)


def walk_tree(
    opener: Opener,
    path: RootedPath,
    *,
    max_depth: int,
    max_entries: int,
    max_bytes: int,
    gitignore: bool,
    after: tuple[str, ...] | None = None,
    halted: Halted,
) -> Tree:
    """Everything beneath a folder, breadth first, so that a truncated tree still has complete upper levels."""
    return _TreeWalk(opener, path, max_depth, max_entries, max_bytes, gitignore, after, halted).run()


class _TreeWalk:
    def __init__(
        self,
        opener: Opener,
        path: RootedPath,
        max_depth: int,
        max_entries: int,
        max_bytes: int,
        gitignore: bool,
        after: tuple[str, ...] | None,
        halted: Halted,
    ) -> None:
        self.opener = opener
        self.path = path
        self.max_depth = max_depth
        self.left = max_entries
        self.room = max_bytes
        self.gitignore = gitignore
        self.after = None if after is None else (len(after), after)
        """The last entry of the page before: its depth, then its names, which is the order of the walk."""
        self.last: tuple[str, ...] | None = None
        self.halted = halted
        self.entries: list[TreeEntry] = []
        self.unread = 0
        self.odd = 0

    def run(self) -> Tree:
        ignores = self._above() if self.gitignore else ()
        queue: deque[tuple[RootedPath, int, tuple[IgnoreFile, ...]]] = deque([(self.path, 1, ignores)])
        is_truncated = False
        while queue and not is_truncated:
            if self.halted():
                raise Aborted("The walk was stopped.")
            folder, depth, above = queue.popleft()
            try:
                with _folder(self.opener, folder) as (descriptor, real):
                    here = self._ignores_of(descriptor, real, above)
                    folders, is_truncated = self._level(descriptor, folder, real, here)
            except LinkError:
                # A folder that cannot be opened is listed but not entered; the target itself must open.
                if depth == 1:
                    raise
                self.unread += 1
                continue
            if depth < self.max_depth:
                queue.extend((folder.child(name), depth + 1, here) for name in folders)
        return Tree(self.entries, is_truncated, self._warnings(), self.last if is_truncated else None)

    def _level(
        self, descriptor: int, folder: RootedPath, real: RootedPath, ignores: tuple[IgnoreFile, ...]
    ) -> tuple[list[str], bool]:
        """Add one folder's entries; returns the folders to enter, and whether a limit was reached."""
        prefix = folder.base
        inside = "".join(part + "/" for part in real.parts)
        folders: list[str] = []
        append = self.entries.append
        below = folder.parts[len(self.path.parts) :]
        for entry in _sorted_entries(descriptor, self.left + 1, real, self._first_new(below)):
            name = entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if ignores and (
                (name == ".git" and self.gitignore) or is_ignored(ignores, inside + name, is_folder=is_folder)
            ):
                continue
            if self.gitignore and name == ".git":
                continue
            is_open = is_folder and not is_closed((*real.parts, name), real.rules)
            if self.after is not None and (len(below) + 1, (*below, name)) <= self.after:
                folders += [name] if is_open else []
                continue
            if self.left <= 0 or self.room <= 0:
                return folders, True
            try:
                found = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            shown = prefix + name
            if not shown.isascii():
                shown = self._plain(shown)
            if is_folder:
                append({"path": shown, "type": "directory", "size": 0})
                folders += [name] if is_open else []
            else:
                append({"path": shown, "type": type_of(found.st_mode), "size": found.st_size})
            self.last = (*below, name)
            self.left -= 1
            # The size of the entry's JSON with its quotes escaped once more.
            self.room -= len(shown) + 66
        return folders, False

    def _first_new(self, below: tuple[str, ...]) -> str | None:
        """The name after which this folder's entries are new; None where all of them are, `_NONE_NEW` where none is."""
        if self.after is None or self.after[0] < len(below) + 1:
            return None
        if self.after[0] > len(below) + 1 or self.after[1][:-1] > below:
            return _NONE_NEW
        return self.after[1][-1] if self.after[1][:-1] == below else None

    def _plain(self, shown: str) -> str:
        plain = printable(shown)
        self.odd += plain is not shown
        self.room -= 3 * len(shown)
        return plain

    def _above(self) -> tuple[IgnoreFile, ...]:
        """The .gitignore files of the folders above the target."""
        found: tuple[IgnoreFile, ...] = ()
        for depth in range(len(self.path.parts)):
            folder = RootedPath(self.path.root, self.path.parts[:depth], self.path.rules, self.path.prefix)
            with _folder(self.opener, folder) as (descriptor, real):
                found = self._ignores_of(descriptor, real, found)
        return found

    def _ignores_of(self, descriptor: int, real: RootedPath, above: tuple[IgnoreFile, ...]) -> tuple[IgnoreFile, ...]:
        if not self.gitignore:
            return ()
        text = _ignore_text(descriptor)
        if not text:
            return above
        return (*above, parse_ignore(text, "".join(part + "/" for part in real.parts)))

    def _warnings(self) -> tuple[str, ...]:
        warnings: list[str] = []
        if self.unread:
            warnings.append(f"{self.unread} folders could not be opened and are listed without their contents.")
        if self.odd:
            warnings.append(_odd_names(self.odd))
        return tuple(warnings)


def is_closed(parts: tuple[str, ...], rules: PathRules) -> bool:
    """True for a folder that a walk lists but never enters, such as a sensitive one."""
    return not rules.allow_sensitive and is_sensitive(parts)


def printable(name: str) -> str:
    """A name as valid JSON text; bytes that are not UTF-8 are escaped."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return os.fsencode(name).decode("utf-8", "backslashreplace")
    return name


@contextmanager
def _folder(opener: Opener, path: RootedPath) -> Iterator[tuple[int, RootedPath]]:
    try:
        descriptor, real = opener.open(path, FOLDER)
    except NotFound as error:
        if error.details.get("errno") == "ENOTDIR":
            raise NotFound(f"{path.shown} is not a folder.", path=path.shown) from None
        raise
    try:
        yield descriptor, real
    finally:
        os.close(descriptor)


def _found(
    descriptor: int, wanted: int, *, include_hidden: bool, after: str | None, real: RootedPath
) -> list["os.DirEntry[str]"]:
    """The first `wanted` entries after `after`, by name; memory stays bounded in a folder of any size."""
    denied = real.rules.denied
    found: list[os.DirEntry[str]] = []
    bound = max(4 * wanted, 50_000)
    with os.scandir(descriptor) as entries:
        for entry in entries:
            name = entry.name
            if name.startswith(".") and (not include_hidden or name.startswith(TEMPORARY)):
                continue
            if (after is not None and name <= after) or (denied and is_denied((*real.parts, name), denied)):
                continue
            found.append(entry)
            if len(found) > bound:
                found = nsmallest(wanted, found, key=_name)
    found.sort(key=_name)
    return found[:wanted]


def _fitting(
    entries: list["os.DirEntry[str]"], prefix: int, room: int = MAX_REPLY - 200_000
) -> list["os.DirEntry[str]"]:
    """As many entries as fit one reply, where each name occurs twice with escaped quotes; at least one."""
    if len(entries) * (2 * _LONGEST + prefix) < room:
        return entries
    for number, entry in enumerate(entries):
        name = entry.name
        room -= 2 * (len(name) if name.isascii() else 4 * len(name)) + prefix + 170
        if room < 0:
            return entries[: max(1, number)]
    return entries


def _listed(
    page: list["os.DirEntry[str]"], prefix: str, fields: list[EntryField] | None
) -> tuple[list[ListedEntry], int]:
    entries: list[ListedEntry] = []
    odd = 0
    for entry in page:
        try:
            found = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        name = entry.name
        if not name.isascii():
            plain = printable(name)
            odd += plain is not name
            name = plain
        mode = found.st_mode
        entries.append(
            {
                "name": name,
                "path": prefix + name,
                "type": "file" if modes.S_ISREG(mode) else type_of(mode),
                "size": found.st_size,
                "modifiedAt": shown_ns(found.st_mtime_ns),
            }
        )
    return (entries if fields is None else _only(entries, fields)), odd


def _named(
    page: list["os.DirEntry[str]"], prefix: str, fields: list[EntryField] | None
) -> tuple[list[ListedEntry], int]:
    """The entries with what the folder itself has of them."""
    entries: list[ListedEntry] = []
    odd = 0
    for entry in page:
        name = entry.name
        if entry.is_file(follow_symlinks=False):
            kind = "file"
        elif entry.is_dir(follow_symlinks=False):
            kind = "directory"
        else:
            try:
                kind = type_of(entry.stat(follow_symlinks=False).st_mode)
            except FileNotFoundError:
                continue
        if not name.isascii():
            plain = printable(name)
            odd += plain is not name
            name = plain
        entries.append({"name": name, "type": kind})
    if fields is not None and "path" in fields:
        for item in entries:
            item["path"] = prefix + item["name"]
    return (entries if fields is None or set(fields) >= {"name", "type"} else _only(entries, fields)), odd


def _only(entries: list[ListedEntry], fields: list[EntryField]) -> list[ListedEntry]:
    """The name, without which no entry can be told from another, and these fields."""
    kept = [field for field in ("name", "path", "type", "size", "modifiedAt") if field == "name" or field in fields]
    return [cast(ListedEntry, {field: entry[field] for field in kept}) for entry in entries]


def _sorted_entries(
    descriptor: int, wanted: int, real: RootedPath, after: str | None = None
) -> list["os.DirEntry[str]"]:
    """The entries by name; of those up to `after`, which were returned before, only the folders, to enter them."""
    denied = real.rules.denied
    kept: list[os.DirEntry[str]] = []
    bound = wanted + 50_000
    with os.scandir(descriptor) as entries:
        for entry in entries:
            if entry.name == MARK_NAME:
                # The state folder of another service.
                return []
            if entry.name.startswith(TEMPORARY) or (denied and is_denied((*real.parts, entry.name), denied)):
                continue
            if after is not None and entry.name <= after and not entry.is_dir(follow_symlinks=False):
                continue
            kept.append(entry)
            if len(kept) > bound and after is None:
                kept = nsmallest(wanted, kept, key=_name)
            elif len(kept) > _MOST_SKIPPED:
                raise LimitExceeded("A folder has too many entries to continue the tree in it; use file.list there.")
    kept.sort(key=_name)
    return kept


def _name(entry: "os.DirEntry[str]") -> str:
    return entry.name


def _ignore_text(descriptor: int) -> str:
    try:
        opened = os.open(".gitignore", READ | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
    except OSError:
        return ""
    try:
        found = os.fstat(opened)
        if not modes.S_ISREG(found.st_mode) or found.st_size > _MAX_IGNORE_FILE:
            return ""
        return os.read(opened, _MAX_IGNORE_FILE).decode("utf-8", "replace")
    finally:
        os.close(opened)


def _odd_names(count: int) -> str:
    return f"{count} names are not UTF-8 text; they are shown escaped and cannot be named in a request."
