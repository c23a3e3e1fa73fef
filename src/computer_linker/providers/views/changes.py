"""What a view would change: its overlay's upper folder compared with the real folder."""

import contextlib
import stat
from dataclasses import dataclass, field, replace
from typing import Literal

from computer_linker.errors import LimitExceeded
from computer_linker.providers.views.names import (
    Entry,
    Parts,
    as_entry,
    attributes_of,
    below,
    digest_at,
    digest_below,
    entry_of,
    is_open,
    is_unreadable,
    open_folder,
    refuse_deep,
)
from computer_linker.system import os

Action = Literal["added", "changed", "removed", "renamed"]
MAX_CHANGES = 100_000
_OPAQUE = "user.overlay.opaque"


@dataclass(frozen=True, slots=True)
class ViewChange:
    """One name that differs. A removed folder stands for everything in it; of an added one, each name is a change."""

    parts: Parts
    action: Action
    before: Entry | None
    after: Entry | None
    is_conflict: bool = False
    """The real folder changed here since the view was made, or has more than the program could see."""
    source: Parts | None = None
    """The former name of a renamed file."""
    is_unreadable: bool = False
    """This user may not read it, in the view or in the folder: what it contains is not known."""
    names: int = 0
    """How many names are in a folder that goes."""


@dataclass(slots=True)
class Comparison:
    """Compares one root of a view with its folder; both are open descriptors, and no link is followed."""

    upper: int
    lower: int
    base_ns: int
    changes: list[ViewChange] = field(default_factory=list)

    def run(self) -> list[ViewChange]:
        """All changes, ordered by path; renames are recognised by their content."""
        self._folder(self.upper, self.lower, ())
        self.changes.sort(key=lambda change: change.parts)
        return self._with_renames()

    def _folder(self, upper: int, lower: int | None, parts: Parts, *, is_anew: bool = False) -> None:
        """Compare a folder; `is_anew` when one above it was removed and made anew, so that nothing of the real one shows."""
        refuse_deep(parts)
        names = os.listdir(upper)
        # Only the outermost new folder has the mark of overlayfs.
        is_anew = is_anew or _is_opaque(upper)
        for name in names:
            self._name(upper, lower, name, (*parts, name), is_anew=is_anew)
        if lower is not None and is_anew:
            # What the new one lacks is gone.
            for name in set(os.listdir(lower)) - set(names):  # an open folder has no path
                self._add((*parts, name), "removed", entry_of(lower, name), None, lower)

    def _name(self, upper: int, lower: int | None, name: str, parts: Parts, *, is_anew: bool) -> None:
        found = os.stat(name, dir_fd=upper, follow_symlinks=False)
        if stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
            # A whiteout: overlayfs marks a removed name with it, also one that was made in the view.
            before = None if lower is None else entry_of(lower, name)
            if before is not None:
                self._add(parts, "removed", before, None, lower)
            return
        self._compared(upper, lower, name, found, parts, is_anew=is_anew)

    def _compared(
        self, upper: int, lower: int | None, name: str, found: os.stat_result, parts: Parts, *, is_anew: bool
    ) -> None:
        before, after = None if lower is None else entry_of(lower, name), as_entry(found)
        is_closed = self._is_closed(parts, before, after)
        if after.kind == "directory" and before is not None and before.kind == "directory":
            if is_closed or self._is_folder_changed(upper, lower, name, before, after):
                self._add(parts, "changed", before, after, is_closed=is_closed)
            if not is_closed:
                self._both(upper, lower, name, parts, is_anew=is_anew)
        elif after.kind == "directory":
            self._add(parts, "added" if before is None else "changed", before, after, lower)
            if not self._is_closed(parts, None, after):
                self._both(upper, None, name, parts, is_anew=is_anew)
        elif before is None or before.kind == "directory":
            self._add(parts, "added" if before is None else "changed", before, after, lower)
        elif is_closed or self._differs(upper, lower, name, before, after):
            self._add(parts, "changed", before, after, is_closed=is_closed)

    def _is_folder_changed(self, upper: int, lower: int | None, name: str, before: Entry, after: Entry) -> bool:
        """A folder's mode, attributes, or a time that a program set: others change with the names in it."""
        if after.mode != before.mode or self.is_set_time(before, after):
            return True
        return after.changed_ns > self.base_ns and attributes_of(upper, name) != attributes_of(lower, name)

    def is_set_time(self, before: Entry, after: Entry) -> bool:
        """True when a folder has a modification time that does not come from a change of the names in it."""
        is_other = after.modified_ns != before.modified_ns
        return is_other and (after.modified_ns < self.base_ns or after.modified_ns > after.changed_ns)

    def _is_closed(self, parts: Parts, before: Entry | None, after: Entry | None) -> bool:
        """True for what this user may not read, in the folder or in the view."""
        if is_open(before) and is_open(after):
            return False
        return is_unreadable(self.lower, parts, before) or is_unreadable(self.upper, parts, after)

    def _both(self, upper: int, lower: int | None, name: str, parts: Parts, *, is_anew: bool) -> None:
        """Compare a folder of the view with the real one, or with none."""
        with contextlib.ExitStack() as opened:
            inner: list[int] = []
            for folder in (upper, lower):
                if folder is not None:
                    inner.append(open_folder(folder, name))
                    opened.callback(os.close, inner[-1])
            self._folder(inner[0], inner[1] if len(inner) > 1 else None, parts, is_anew=is_anew)

    def _differs(self, upper: int, lower: int | None, name: str, before: Entry, after: Entry) -> bool:
        """A program that opened a file for writing and wrote nothing left a copy, which is no change."""
        facts = (before.kind, before.mode, before.size, before.modified_ns, before.owner)
        if facts != (after.kind, after.mode, after.size, after.modified_ns, after.owner):
            return True
        if after.links not in (1, before.links):
            # It has another name in the view, which is a change of both.
            return True
        if after.kind == "symlink":
            return os.readlink(name, dir_fd=upper) != os.readlink(name, dir_fd=lower)
        if after.kind != "file":
            return False
        return digest_at(upper, name) != digest_at(lower, name) or attributes_of(upper, name) != attributes_of(
            lower, name
        )

    def _add(
        self,
        parts: Parts,
        action: Action,
        before: Entry | None,
        after: Entry | None,
        lower: int | None = None,
        *,
        is_closed: bool | None = None,
    ) -> None:
        if len(self.changes) >= MAX_CHANGES:
            raise LimitExceeded(f"The view changes more than {MAX_CHANGES} names.", limit=MAX_CHANGES)
        is_conflict = before is not None and before.changed_ns > self.base_ns
        is_unreadable = self._is_closed(parts, before, after) if is_closed is None else is_closed
        names = 0
        if before is not None and before.kind == "directory" and lower is not None:
            try:
                inside = [entry for _, entry in below(lower, parts[-1])]
                names, is_conflict = len(inside), is_conflict or self._has_newer(before, *inside)
            except PermissionError:
                is_unreadable = True
        self.changes.append(ViewChange(parts, action, before, after, is_conflict, None, is_unreadable, names))

    def _has_newer(self, *entries: Entry) -> bool:
        """True when a folder has something newer than the view, or that no program in the view could see."""
        # A program in the view sees an empty folder where another file system is mounted: it removed nothing of that.
        device = os.fstat(self.lower).st_dev
        return any(entry.changed_ns > self.base_ns or entry.device != device for entry in entries)

    def _with_renames(self) -> list[ViewChange]:
        """A removed and an added file of the same content are one renamed file."""
        gone, new = self._files("removed"), self._files("added")
        # Only what has a counterpart of its size is read.
        sizes = {entry.size for _, entry in gone} & {entry.size for _, entry in new}
        known: dict[tuple[int, str], list[ViewChange]] = {}
        for change, entry in gone:
            if entry.size in sizes:
                known.setdefault((entry.size, digest_below(self.lower, change.parts)), []).append(change)
        renamed: dict[Parts, ViewChange] = {}
        for change, entry in new:
            if entry.size not in sizes:
                continue
            matches = known.get((entry.size, digest_below(self.upper, change.parts)))
            if matches:
                old = matches.pop(0)
                renamed[change.parts] = replace(
                    old, parts=change.parts, action="renamed", after=entry, source=old.parts
                )
                renamed[old.parts] = replace(old, source=old.parts)
        kept = (renamed.get(change.parts, change) for change in self.changes)
        return [change for change in kept if not (change.action == "removed" and change.source)]

    def _files(self, action: Action) -> list[tuple[ViewChange, Entry]]:
        """The readable files that were added or removed."""
        found = ((change, change.after or change.before) for change in self.changes if change.action == action)
        return [
            (change, entry)
            for change, entry in found
            if entry is not None and entry.kind == "file" and not change.is_unreadable
        ]


def _is_opaque(folder: int) -> bool:
    try:
        return os.getxattr(folder, _OPAQUE) == b"y"
    except OSError:
        return False
