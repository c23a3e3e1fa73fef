"""Turns what a view would change into changes of the real folder: all of them, or chosen ones."""

import contextlib
import os
import secrets
import stat
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from computer_linker.computer.facets.files import Change, MakeFolder, Mark, Remove, Restore
from computer_linker.errors import Conflict, LinkError
from computer_linker.model.paths import RootedPath
from computer_linker.policy.names import GIT_NAMES, is_git_folder
from computer_linker.policy.paths import check_name
from computer_linker.providers.views.changes import Entry, Parts, ViewChange, as_entry, open_parent
from computer_linker.providers.views.entries import NEW, copy_file, copy_link, copy_metadata
from computer_linker.providers.views.merging import MergedText
from computer_linker.undo.store import KeptFiles

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


_GIT_NAMES = {name.casefold(): name for name in GIT_NAMES}


def never_kept(found: Sequence[tuple[RootedPath, ViewChange]]) -> dict[RootedPath, str]:
    """The changes that are not put in place whatever is chosen, and why."""
    planted = _repositories(found)
    reasons: dict[RootedPath, str] = {}
    for path, change in found:
        why = _why_never(path, change)
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


def _why_never(path: RootedPath, change: ViewChange) -> str | None:
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
        return error.message
    return None


@dataclass(slots=True)
class Keeping:
    """Copies the entries of a view beside the undo journal, from where a batch of changes puts them in place.

    They are copied, not linked: a descriptor that a program passed to another one must not reach what is kept.
    """

    root: RootedPath
    upper: int
    kept: KeptFiles
    merges: Mapping[RootedPath, MergedText] = field(default_factory=dict)
    """The texts that replace those of the view."""
    names: list[str] = field(default_factory=list)
    """What was copied; the caller removes it when the changes are not made."""

    def plan(self, changes: Sequence[ViewChange]) -> list[Change]:
        """The changes that put these in place. A folder that is new goes in as a whole, with those of its names that are here."""
        chosen = {change.parts: change.after for change in changes if change.after is not None}
        new_folders: list[Parts] = []
        planned: list[Change] = []
        for change in changes:
            path = self.root.child(*change.parts)
            planned += self._removals(path, change)
            if any(change.parts[: len(folder)] == folder for folder in new_folders):
                continue
            if _is_mode(change):
                planned.append(MakeFolder(path, mode=change.after.mode & 0o1777 if change.after else None))
                continue
            if change.after is not None and change.after.kind == "directory":
                new_folders.append(change.parts)
            if change.after is not None:
                text = self.merges.get(path)
                name = self._copied(change.parts, chosen) if text is None else self._written(text)
                planned.append(Restore(path, name, _replaced(change)))
        return planned

    def _removals(self, path: RootedPath, change: ViewChange) -> list[Change]:
        if change.source is not None:
            return [Remove(self.root.child(*change.source), expect=_mark(change))]
        if change.before is None or _is_mode(change) or _replaced(change) is not None:
            return []
        return [Remove(path, recursive=True, expect=_mark(change))]

    def _written(self, text: MergedText) -> str:
        name = secrets.token_hex(16)
        self.names.append(name)
        with os.fdopen(os.open(name, NEW, 0o600, dir_fd=self.kept.folder), "wb") as file:
            file.write(text.content)
            os.fchmod(file.fileno(), text.mode & 0o777)
        return name

    def _copied(self, parts: Parts, chosen: Mapping[Parts, Entry]) -> str:
        name = secrets.token_hex(16)
        self.names.append(name)
        above = open_parent(self.upper, parts)
        try:
            copy_entry(above, parts[-1], self.kept.folder, name, parts, chosen)
        finally:
            os.close(above)
        return name


def _is_mode(change: ViewChange) -> bool:
    """True for a folder that was there and has another mode."""
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


def copy_entry(source: int, name: str, target: int, new_name: str, parts: Parts, chosen: Mapping[Parts, Entry]) -> None:
    """Copy one name with mode, times, attributes and link target; of a folder the names that were chosen.

    Raises Conflict when one is no longer what was chosen: a descriptor passed to another program outlives the view's own.
    """
    found = os.stat(name, dir_fd=source, follow_symlinks=False)
    _refuse_changed(found, parts, chosen)
    if stat.S_ISLNK(found.st_mode):
        copy_link(source, name, target, new_name)
        _refuse_changed(os.stat(name, dir_fd=source, follow_symlinks=False), parts, chosen)
        return
    if not stat.S_ISDIR(found.st_mode):
        _refuse_changed(copy_file(source, name, target, new_name, found), parts, chosen)
        return
    opened = os.open(name, _FOLDER, dir_fd=source)
    try:
        os.mkdir(new_name, 0o700, dir_fd=target)
        made = os.open(new_name, _FOLDER, dir_fd=target)
        try:
            for inner in os.listdir(opened):  # noqa: PTH208
                if (*parts, inner) in chosen:
                    copy_entry(opened, inner, made, inner, (*parts, inner), chosen)
            copy_metadata(opened, made, found)
            _refuse_changed(os.fstat(opened), parts, chosen)
        finally:
            os.close(made)
    finally:
        os.close(opened)


def _refuse_changed(found: os.stat_result, parts: Parts, chosen: Mapping[Parts, Entry]) -> None:
    if as_entry(found) != chosen[parts]:
        raise Conflict(f"{'/'.join(parts)} was changed in the view while it was kept. Nothing was kept.")


def discard(uppers: Sequence[tuple[int, str]], chosen: Sequence[tuple[RootedPath, ViewChange]]) -> None:
    """Remove kept names from the view, so that the real folder shows there again."""
    for upper, root in uppers:
        for path, change in reversed(chosen):
            if path.root != root:
                continue
            for parts in (change.parts, *([change.source] if change.source else [])):
                above = open_parent(upper, parts)
                try:
                    _unlink(above, parts[-1])
                finally:
                    os.close(above)


def _unlink(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except IsADirectoryError:
        # Changes are ordered parents first and removed in reverse, so nothing kept is left in it.
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=folder)
    except FileNotFoundError:
        return
