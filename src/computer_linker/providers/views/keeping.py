"""Turns what a view would change into changes of the real folder: all of them, or chosen ones."""

import contextlib
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from computer_linker.computer.facets.files import Change, MakeFolder, Mark, Remove, Restore
from computer_linker.errors import Conflict, LinkError
from computer_linker.model.paths import RootedPath
from computer_linker.policy.names import GIT_NAMES, is_git_folder
from computer_linker.policy.paths import check_name
from computer_linker.providers.views.changes import ViewChange
from computer_linker.providers.views.entries import NEW, copy_file, copy_link, copy_metadata, link_file
from computer_linker.providers.views.merging import MergedText
from computer_linker.providers.views.names import (
    Entry,
    Parents,
    Parts,
    attributes_below,
    entry_below,
    folders_in,
    is_same_state,
    open_folder,
)
from computer_linker.system import os
from computer_linker.undo.store import KeptFiles

_MAX_PATH = 4000
_GIT_NAMES = {name.casefold(): name for name in GIT_NAMES}


def never_kept(found: Sequence[tuple[RootedPath, ViewChange]]) -> dict[RootedPath, str]:
    """The changes that are not put in place whatever is chosen, and why."""
    planted = _repositories(found)
    new = {(path.root, path.parts) for path, change in found if is_new_folder(change)}
    reasons: dict[RootedPath, str] = {}
    for path, change in found:
        is_inside = bool(new) and any((path.root, path.parts[:at]) in new for at in range(1, len(path.parts)))
        why = _why_never(path, change, is_inside=is_inside)
        above = (replace(path, parts=path.parts[:at]) for at in range(1, len(path.parts) + 1)) if planted else ()
        if why is None and not planted.isdisjoint(above):
            why = "With it git takes its folder for a repository, and runs what that says."
        if why is not None:
            reasons[path] = why
    return reasons


def _repositories(found: Sequence[tuple[RootedPath, ViewChange]]) -> set[RootedPath]:
    """The entries that together make a folder a repository for git, whatever its name."""
    made: defaultdict[RootedPath, dict[str, RootedPath]] = defaultdict(dict)
    for path, change in found:
        name = _GIT_NAMES.get(path.parts[-1].casefold())
        if name is not None and change.after is not None and not path.rules.allow_protected:
            made[replace(path, parts=path.parts[:-1])][name] = path
    return {path for names in made.values() if is_git_folder(names) for path in names.values()}


def is_new_folder(change: ViewChange) -> bool:
    """True for a folder that is not in the real one."""
    is_there = change.before is not None and change.before.kind == "directory"
    return change.after is not None and change.after.kind == "directory" and not is_there


def _why_never(path: RootedPath, change: ViewChange, *, is_inside: bool) -> str | None:
    """`is_inside` for what lies in a new folder: a program that writes there itself makes such names too, as pip does."""
    kinds = {entry.kind for entry in (change.before, change.after) if entry is not None}
    if "other" in kinds:
        return "It is a device, a socket or a pipe."
    if change.is_unreadable:
        return "Its mode does not let this user read it. Change its mode in the view."
    try:
        check_name(path, for_writing=True)
        if change.source is not None:
            check_name(RootedPath(path.root, change.source, path.rules, path.prefix), for_writing=True)
    except LinkError as error:
        is_own = is_inside and change.action == "added" and error.details.get("rule") == "sensitive"
        return None if is_own else error.message
    return None


@dataclass(slots=True)
class Keeping:
    """Brings the entries of a view beside the undo journal, from where a batch of changes puts them in place.

    They are copied: a descriptor that a program passed to another one must not reach what is kept. The files of a view that
    no program can reach any more get a second name there instead; the caller removes the first (`discard`).
    """

    root: RootedPath
    upper: int
    lower: int
    kept: KeptFiles
    base_ns: int
    """What is newer in the folder was changed since the view was made."""
    is_sealed: bool
    """No program can reach the view any more."""
    merges: Mapping[RootedPath, MergedText] = field(default_factory=dict)
    """The texts that replace those of the view."""
    names: list[str] = field(default_factory=list)
    """What was copied; the caller removes it when the changes are not made."""
    linked: list[Parts] = field(default_factory=list)
    """The files of the view that are not copied."""
    _prefix: str = field(default_factory=lambda: secrets.token_hex(12))

    def plan(self, changes: Sequence[tuple[RootedPath, ViewChange]], *, is_part: bool) -> list[Change]:
        """The changes that put these in place: all that the view has, or a part.

        A folder that is new goes in as a whole, with those of its names that are here.
        """
        chosen = {change.parts: change.after for _, change in changes if change.after is not None}
        copied = Copied(chosen, self.kept.folder, self.linked if self.is_sealed else None)
        new_folder: Parts | None = None
        planned: list[Change] = []
        facts: dict[Parts, Change] = {}
        with Parents(self.upper) as parents:
            for path, change in changes:
                planned += self._removals(path, change)
                # Ordered by path: everything in a folder follows it.
                if new_folder is not None and change.parts[: len(new_folder)] == new_folder:
                    continue
                if _is_folder(change):
                    facts[change.parts] = self._facts(path, change)
                elif change.after is not None:
                    new_folder = change.parts if change.after.kind == "directory" else new_folder
                    text = self.merges.get(path) if self.merges else None
                    if text is None:
                        name = self._new_name()
                        copied.copy(parents.of(change.parts), change.parts, name)
                    else:
                        name = self._written(text)
                    planned.append(Restore(path, name, _replaced(change)))
        changed = {change.path.parts[:-1] for change in planned}
        for folder, modified_ns in self._times(changed, is_part=is_part).items():
            facts.setdefault(folder, MakeFolder(self.root.child(*folder), modified_ns=modified_ns))
        return [*_together(planned), *(facts[parts] for parts in sorted(facts, reverse=True))]

    def _times(self, changed: Set[Parts], *, is_part: bool) -> dict[Parts, int]:
        """The times that folders have in the view: names that are put in place, or came and went there, change them.

        Not of the root itself, nor of a folder that changed in the real one since.
        """
        found: dict[Parts, int] = {}
        todo: list[Parts] = [()]
        while todo:
            parts = todo.pop()
            seen, real = entry_below(self.upper, parts), entry_below(self.lower, parts)
            if seen is None or real is None or {seen.kind, real.kind} != {"directory"}:
                continue
            is_other = parts in changed or (seen.modified_ns != real.modified_ns and not is_part)
            if parts and is_other and real.modified_ns <= self.base_ns:
                found[parts] = seen.modified_ns
            todo += ((*parts, name) for name in folders_in(self.upper, parts))
        return found

    def _removals(self, path: RootedPath, change: ViewChange) -> list[Change]:
        if change.source is not None:
            return [Remove(self.root.child(*change.source), expect=_mark(change))]
        if change.before is None or _is_folder(change) or _replaced(change) is not None:
            return []
        return [Remove(path, recursive=True, expect=_mark(change))]

    def _facts(self, path: RootedPath, change: ViewChange) -> MakeFolder:
        """The mode, time and attributes of a folder that was there."""
        before, after = change.before, change.after
        assert before is not None and after is not None
        mode = after.mode & 0o1777
        now, was = attributes_below(self.upper, change.parts), attributes_below(self.lower, change.parts)
        attributes = tuple((name, now.get(name)) for name in sorted({*now, *was}) if now.get(name) != was.get(name))
        return MakeFolder(path, False, mode if mode != before.mode else None, after.modified_ns, attributes)

    def _new_name(self) -> str:
        self.names.append(f"{self._prefix}{len(self.names):x}")
        return self.names[-1]

    def _written(self, text: MergedText) -> str:
        name = self._new_name()
        with os.fdopen(os.open(name, NEW, 0o600, dir_fd=self.kept.folder), "wb") as file:
            file.write(text.content)
            os.fchmod(file.fileno(), text.mode & 0o777)
        return name


def _together(planned: list[Change]) -> list[Change]:
    """Removals first, then what is put in place, folder by folder: the files of one are exchanged together."""
    removed = [change for change in planned if isinstance(change, Remove)]
    placed = [change for change in planned if not isinstance(change, Remove)]
    placed.sort(key=lambda change: change.path.parts[:-1])
    return [*removed, *placed]


def _is_folder(change: ViewChange) -> bool:
    """True for a folder that was there and has another mode, time or attributes."""
    return (
        change.before is not None
        and change.after is not None
        and change.before.kind == change.after.kind == "directory"
    )


def _mark(change: ViewChange) -> Mark | None:
    before = change.before
    if before is None or before.kind == "directory":
        return None
    return Mark(before.device, before.inode, before.size, before.modified_ns)


def _replaced(change: ViewChange) -> Mark | None:
    """The state that a restore replaces in one step; None where the name is free by then."""
    before, after = change.before, change.after
    if change.source is not None or before is None or after is None or {before.kind, after.kind} != {"file"}:
        return None
    return _mark(change)


@dataclass(slots=True)
class Copied:
    """Copies into one private folder. The files with several names in a view get as many in the copy."""

    chosen: Mapping[Parts, Entry]
    kept: int
    """The folder that all copies are made in, open."""
    linked: list[Parts] | None
    """The files that are linked instead; None where a program may still reach the view."""
    _places: dict[tuple[int, int], str] = field(default_factory=dict)
    """Where the files with several names were copied to."""

    def copy(self, source: int, parts: Parts, place: str) -> None:
        """Copy one name of the view with everything in it that was chosen."""
        self._entry(source, parts[-1], self.kept, place, parts, place)

    def _entry(self, source: int, name: str, target: int, new_name: str, parts: Parts, place: str) -> None:
        """Copy one name with mode, times, attributes and link target; of a folder the names that were chosen.

        Raises Conflict when one is no longer what was chosen: a descriptor passed to another program outlives the view's own.
        """
        entry = self.chosen[parts]
        if entry.kind == "file":
            if entry.links > 1 and self._is_linked(entry, target, new_name, place):
                return
            if self.linked is not None and entry.links == 1 and link_file(source, name, target, new_name, entry.mode):
                self.linked.append(parts)
                return
            _refuse_changed(copy_file(source, name, target, new_name, entry.size), parts, entry)
        elif entry.kind == "symlink":
            _refuse_changed(os.stat(name, dir_fd=source, follow_symlinks=False), parts, entry)
            copy_link(source, name, target, new_name)
            _refuse_changed(os.stat(name, dir_fd=source, follow_symlinks=False), parts, entry)
        else:
            self._folder(source, name, target, new_name, parts, place)

    def _folder(self, source: int, name: str, target: int, new_name: str, parts: Parts, place: str) -> None:
        entry = self.chosen[parts]
        opened = open_folder(source, name)
        try:
            found = os.fstat(opened)
            _refuse_changed(found, parts, entry)
            os.mkdir(new_name, 0o700, dir_fd=target)
            made = open_folder(target, new_name)
            try:
                for inner in os.listdir(opened):
                    below = (*parts, inner)
                    if below in self.chosen:
                        self._entry(opened, inner, made, inner, below, f"{place}/{inner}")
                copy_metadata(opened, made, found)
                _refuse_changed(os.fstat(opened), parts, entry)
            finally:
                os.close(made)
        finally:
            os.close(opened)

    def _is_linked(self, entry: Entry, target: int, new_name: str, place: str) -> bool:
        """Link the name to an earlier copy of the same file. False for the first, and where that has too long a path."""
        first = self._places.setdefault((entry.device, entry.inode), place)
        if first == place or len(os.fsencode(first)) >= _MAX_PATH:
            return False
        os.link(first, new_name, src_dir_fd=self.kept, dst_dir_fd=target, follow_symlinks=False)
        return True


def _refuse_changed(found: os.stat_result, parts: Parts, entry: Entry) -> None:
    if not is_same_state(found, entry):
        raise Conflict(f"{'/'.join(parts)} was changed in the view while it was kept. Nothing was kept.")


def discard(upper: int, names: Iterable[Parts]) -> None:
    """Remove names from a root of a view, so that the real folder shows there again; a folder after what is in it."""
    with Parents(upper) as parents:
        for parts in names:
            _unlink(parents.of(parts), parts[-1])


def kept_names(root: RootedPath, chosen: Sequence[tuple[RootedPath, ViewChange]]) -> Iterator[Parts]:
    """The names of a root that were kept, and the former ones of renamed files; a folder after what is in it."""
    for path, change in reversed(chosen):
        if path.root == root.root:
            yield change.parts
            if change.source is not None:
                yield change.source


def _unlink(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except IsADirectoryError:
        # Changes are ordered parents first and removed in reverse, so nothing kept is left in it.
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=folder)
    except FileNotFoundError:
        return
