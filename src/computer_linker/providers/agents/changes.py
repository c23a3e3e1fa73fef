"""The changes of a turn: the summary, the diff, and the record with which file.undo reverts them."""

import stat

from computer_linker.computer.facets.files import Files, Inverse, Stat
from computer_linker.errors import LimitExceeded, LinkError, NotFound
from computer_linker.model.paths import RootedPath
from computer_linker.providers.agents.sessions import ChangedFile, DiffSummary
from computer_linker.providers.agents.shadow import Changed, Comparison, Shadow
from computer_linker.system import os
from computer_linker.undo.journal import Entry, UndoJournal

_MAX_LISTED = 500
_MAX_UNDOABLE = 2000
_ACTIONS = {"A": "added", "D": "deleted"}


def summary_of(found: Comparison, shown: str, *, undoable: bool) -> DiffSummary:
    """The comparison as callers see it; `shown` is the working folder as clients name it."""
    prefix = "" if shown == "." else shown if shown.endswith(":") else f"{shown.rstrip('/')}/"
    files = [
        ChangedFile(
            path=prefix + os.fsencode("/".join(each.parts)).decode("utf-8", "backslashreplace"),
            action=_ACTIONS.get(each.action, "modified"),  # type: ignore[arg-type]  # the two letters and the rest
            insertions=each.insertions,
            deletions=each.deletions,
            binary=each.is_binary,
        )
        for each in found.changed[:_MAX_LISTED]
    ]
    return DiffSummary(
        changed_files=len(found.changed),
        insertions=sum(each.insertions for each in found.changed),
        deletions=sum(each.deletions for each in found.changed),
        files=files,
        truncated=len(found.changed) > _MAX_LISTED,
        undoable=undoable,
    )


class Takeback:
    """Records how to revert one turn's changes."""

    def __init__(self, journal: UndoJournal, files: Files, shadow: Shadow) -> None:
        self._journal = journal
        self._files = files
        self._shadow = shadow

    async def record(self, cwd: RootedPath, found: Comparison, entry: Entry) -> bool:
        """Record the changes in the undo journal. False, with nothing recorded, unless all of them can be reverted."""
        changed = found.changed
        replaced = [each for each in changed if each.action != "A"]
        if not changed or len(changed) > _MAX_UNDOABLE or not all(stat.S_ISREG(each.old_mode) for each in replaced):
            return False
        try:
            contents = await self._shadow.contents(cwd, [each.old_blob for each in replaced])
        except LimitExceeded:
            return False
        steps: list[Inverse] = []
        try:
            for each in changed:
                steps.append(await self._step(cwd, each, contents, entry))
        except (LinkError, OSError):
            self._journal.kept.drop([step["kept"] for step in steps if "kept" in step])
            return False
        for parts in found.new_folders[:_MAX_UNDOABLE]:
            steps.append({"do": "rmdir", "root": cwd.root, "path": [*cwd.parts, *parts]})
        entry.commit(steps)
        return True

    async def _step(self, cwd: RootedPath, each: Changed, contents: dict[str, bytes], entry: Entry) -> Inverse:
        path = cwd.child(*each.parts)
        now = await self._now(path)
        where: Inverse = {"root": path.root, "path": list(path.parts)}
        after: Inverse = {} if now is None else {"after": now.mark.to_list()}
        if each.action == "A":
            return {"do": "remove", **where, **after}
        content = contents[each.old_blob]
        kept = self._keep(content, _mode(each, now), entry)
        return {"do": "restore", **where, "kept": kept, "bytes": len(content), **after}

    def _keep(self, content: bytes, mode: int, entry: Entry) -> str:
        name = entry.new_name()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(name, flags, 0o600, dir_fd=entry.folder), "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
        return name

    async def _now(self, path: RootedPath) -> Stat | None:
        try:
            return await self._files.stat(path)
        except NotFound:
            return None


def _mode(each: Changed, now: Stat | None) -> int:
    """The mode to restore: the present one where only the content changed, else that of the snapshot."""
    if now is not None and each.old_mode == each.new_mode:
        return now.mode & 0o777
    return each.old_mode & 0o777
