"""From the journal's steps back to changes, and the recovery of a batch that a crash cut in two."""

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
from computer_linker.undo.journal import Entry, Journal

Rooting = Callable[[str, list[str]], RootedPath]
"""A step's path, judged by the scope as it is now."""

_UNRULED = PathRules(allow_sensitive=True, allow_protected=True)


def changes_of(steps: list[Inverse], rooting: Rooting) -> list[Change]:
    """The changes that take an operation back."""
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
            return MakeFolder(path, parents=True)
        case "move":
            return Move(path, rooting(step["toRoot"], step["to"]), create_parents=True, expect=after)


async def recover(journal: Journal, files: Files) -> list[str]:
    """Put back what a crash left half made; gives the operation ids. Called when the service starts.

    A single change is one rename, so it either happened or did not; its record stays, and undo tells by the file's mark.
    Of several, those that happened are taken back: a step whose mark does not fit the file was never made.
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
        # Not made before the crash, or changed by somebody since: either way it is not ours to touch.
        return


async def _at_once() -> None:
    return None


class _Borrowed:
    """A keeper that lends the kept files and writes nothing down."""

    def __init__(self, entry: Entry) -> None:
        self.folder = entry.folder
        # Nothing fits, so nothing is kept a second time.
        self.room = -1

    def new_name(self) -> str:
        raise AssertionError("nothing is kept while recovering")

    def begun(self, steps: list[Inverse], leftovers: list[dict[str, object]]) -> None: ...

    def done(self) -> None: ...

    def void(self) -> None: ...
