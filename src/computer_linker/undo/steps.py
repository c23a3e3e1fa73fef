"""Converts the journal's steps to changes, and recovers a batch that a crash interrupted."""

from base64 import b64decode
from collections.abc import Callable

from computer_linker.computer.facets.files import (
    Change,
    Files,
    Inverse,
    MakeFolder,
    Mark,
    Move,
    Remove,
    Restore,
)
from computer_linker.errors import LinkError
from computer_linker.model.paths import PathRules, RootedPath
from computer_linker.undo.journal import Entry, UndoJournal

Rooting = Callable[[str, list[str]], RootedPath]
"""A step's path, judged by the scope as it is now."""

_UNRULED = PathRules(allow_sensitive=True, allow_protected=True)


def changes_of(steps: list[Inverse], rooting: Rooting) -> list[Change]:
    """Return the changes that undo an operation."""
    return [_change(step, rooting) for step in steps]


def _change(step: Inverse, rooting: Rooting) -> Change:
    path = rooting(step["root"], step["path"])
    after = Mark(*step["after"]) if "after" in step else None
    match step["do"]:
        case "remove":
            return Remove(path, recursive=True, expect=after)
        case "restore":
            return Restore(path, step["kept"], after)
        case "rmdir":
            return Remove(path, only_if_empty=True)
        case "mkdir":
            stored = step.get("attributes", {}).items()
            attributes = tuple((name, None if value is None else b64decode(value)) for name, value in stored)
            return MakeFolder(path, True, step.get("mode"), step.get("modified"), attributes)
        case "move":
            return Move(path, rooting(step["toRoot"], step["to"]), create_parents=True, expect=after)


async def recover(journal: UndoJournal, files: Files) -> list[str]:
    """Undo changes that a crash left half made; return the operation ids. Called when the service starts.

    A single change is one rename, so it either happened or did not; its record stays, and undo decides by the file's mark.
    Of several, those that happened are undone: a step whose mark does not match the file was never made.
    """
    recovered: list[str] = []
    for record in journal.unfinished():
        if len(record.steps) > 1:
            entry = journal.begin(record.operation_id, record.scope_id, record.principal)
            for step in record.steps:
                await _take_back(files, step, entry)
            recovered.append(record.operation_id)
        for leftover in record.leftovers:
            path = RootedPath(leftover["root"], tuple(leftover["path"]), _UNRULED)
            await _try(files, Remove(path, recursive=True), None)
        if len(record.steps) > 1:
            journal.forget(record.operation_id, keeps_files=False)
        else:
            record.state = "done"
            journal.close_entry(record)
    journal.is_recovered = True
    return recovered


async def _take_back(files: Files, step: Inverse, entry: Entry) -> None:
    change = _change(step, lambda root, parts: RootedPath(root, tuple(parts), _UNRULED))
    await _try(files, change, _Borrowed(entry))


async def _try(files: Files, change: Change, keeper: "_Borrowed | None") -> None:
    try:
        await files.change([change], gate=_at_once, keeper=keeper)
    except LinkError:
        # Not made before the crash, or changed since by another program: in both cases leave it alone.
        return


async def _at_once() -> None:
    return None


class _Borrowed:
    """A keeper that reads the stored files and records nothing."""

    def __init__(self, entry: Entry) -> None:
        self.folder = entry.folder
        # No room, so nothing is stored a second time.
        self.room = -1

    def new_name(self) -> str:
        raise AssertionError("nothing is kept while recovering")

    def begun(self, steps: list[Inverse], leftovers: list[dict[str, object]]) -> None: ...

    def done(self) -> None: ...

    def void(self) -> None: ...
