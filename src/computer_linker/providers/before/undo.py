"""Records in the undo journal what a command changed, by its before-image."""

from collections import defaultdict
from collections.abc import Callable, Sequence

from computer_linker.computer.facets.files import Inverse, Mark
from computer_linker.providers.before.images import Image
from computer_linker.providers.views.entries import copy_file, copy_link
from computer_linker.providers.views.names import Entry, Parts, open_folder
from computer_linker.system import os
from computer_linker.undo.journal import Entry as JournalEntry

_MAX_STEPS = 5000


class NotUndoable(Exception):
    """The changes cannot be taken back; the message has the reason."""


class CommandChanges:
    """The steps that take back what differs between an image and the folder now."""

    def __init__(self, image: Image, now: dict[Parts, Entry]) -> None:
        self._image, self._now = image, now
        before = image.entries
        self._changed = [parts for parts, entry in now.items() if parts in before and _differs(before[parts], entry)]
        self._new = [parts for parts in now if parts not in before]
        self._gone = [parts for parts in before if parts not in now]
        self._inside: defaultdict[Parts, list[Parts]] = defaultdict(list)
        for parts in before:
            self._inside[parts[:-1]].append(parts)

    @property
    def count(self) -> int:
        """How many names differ."""
        return len(self._changed) + len(self._new) + len(self._gone)

    def steps(self, entry: JournalEntry, copied: list[str]) -> list[Inverse]:
        """Copies what is to be restored beside the journal, under names that are added to `copied`. Raises NotUndoable."""
        if self.count > _MAX_STEPS:
            raise NotUndoable(f"it changed more than {_MAX_STEPS} names")
        before, now = self._image.entries, self._now
        kinds = {parts: {before[parts].kind, now[parts].kind} for parts in self._changed}
        # Only a file is replaced by a file, and a folder changed, in one step.
        replaced = {parts for parts in self._changed if kinds[parts] not in ({"file"}, {"directory"})}
        fresh = [parts for parts in self._new if not _is_below(parts, replaced)]
        trees = {parts for parts in (*self._gone, *replaced) if before[parts].kind == "directory"}
        back = [parts for parts in sorted((*self._gone, *self._changed)) if not _is_below(parts, trees)]
        steps = [self._removed(parts) for parts in (*sorted(replaced), *fresh) if self._goes_first(parts, replaced)]
        folders = sorted((parts for parts in fresh if now[parts].kind == "directory"), key=len, reverse=True)
        steps += [{"do": "rmdir", **self._where(parts)} for parts in folders]
        for parts in back:
            if kinds.get(parts) == {"directory"}:
                steps.append({"do": "mkdir", **self._where(parts), "mode": before[parts].mode & 0o1777})
            else:
                has_after = parts in now and parts not in replaced
                steps.append(self._restored(parts, entry, copied, has_after=has_after))
        return steps

    def _goes_first(self, parts: Parts, replaced: set[Parts]) -> bool:
        return parts in replaced or self._now[parts].kind != "directory"

    def _removed(self, parts: Parts) -> Inverse:
        return {"do": "remove", **self._where(parts), **self._after(parts)}

    def _restored(self, parts: Parts, entry: JournalEntry, copied: list[str], *, has_after: bool) -> Inverse:
        name = entry.new_name()
        copied.append(name)
        store = os.open(self._image.store, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            size = self._put(parts, store, entry.folder, name)
        finally:
            os.close(store)
        after = self._after(parts) if has_after else {}
        return {"do": "restore", **self._where(parts), "kept": name, "bytes": size, **after}

    def _put(self, parts: Parts, store: int, folder: int, name: str) -> int:
        """Copy an entry of the image, a folder with everything in it. Returns the bytes of its files."""
        before = self._image.entries[parts]
        if before.kind == "directory":
            return self._put_folder(parts, store, folder, name)
        copy = self._image.copies.get(parts)
        if copy is None:
            raise NotUndoable(f"{'/'.join(parts)} is a device, a socket or a pipe, or changed while it was copied")
        if before.kind == "symlink":
            copy_link(store, copy, folder, name)
            return 0
        copy_file(store, copy, folder, name, os.stat(copy, dir_fd=store, follow_symlinks=False).st_size)
        return before.size

    def _put_folder(self, parts: Parts, store: int, folder: int, name: str) -> int:
        before = self._image.entries[parts]
        os.mkdir(name, 0o700, dir_fd=folder)
        made = open_folder(folder, name)
        try:
            size = sum(self._put(each, store, made, each[-1]) for each in self._inside[parts])
            os.fchmod(made, before.mode & 0o1777)
            os.utime(made, ns=(before.modified_ns, before.modified_ns))
        finally:
            os.close(made)
        return size

    def _where(self, parts: Parts) -> Inverse:
        return {"root": self._image.root.root, "path": [*self._image.root.parts, *parts]}

    def _after(self, parts: Parts) -> Inverse:
        """The mark of an entry now; of a folder that of everything in it."""
        found, inside = self._now[parts], [self._now[parts]]
        if found.kind == "directory":
            inside += [entry for each, entry in self._now.items() if _is_below(each, {parts})]
        size = sum(each.size for each in inside if each.kind == "file") if found.kind == "directory" else found.size
        newest = max(each.modified_ns for each in inside)
        return {"after": Mark(found.device, found.inode, size, newest).to_list()}


def _is_below(parts: Parts, tops: set[Parts]) -> bool:
    return any(parts[:size] in tops for size in range(1, len(parts)))


def steps_of(
    changes: Sequence[CommandChanges], entry: JournalEntry, drop: Callable[[list[str]], None]
) -> list[Inverse]:
    """The steps of all roots for one record. Raises NotUndoable or OSError, with what was copied given to `drop`."""
    steps: list[Inverse] = []
    copied: list[str] = []
    try:
        for each in changes:
            steps += each.steps(entry, copied)
        if sum(step.get("bytes", 0) for step in steps) > entry.room:
            raise NotUndoable("it replaced more than the undo journal holds")
    except (NotUndoable, OSError):
        drop(copied)
        raise
    return steps


def _differs(before: Entry, now: Entry) -> bool:
    """A folder counts by its mode only: its times change with its names."""
    if before.kind == now.kind == "directory":
        return before.mode != now.mode
    return before != now
