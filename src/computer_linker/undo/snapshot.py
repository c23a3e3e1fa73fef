"""Undo for programs that change files in place, such as a Codex run: keep first, let it run, then record what changed."""

from dataclasses import dataclass

from computer_linker.computer.facets.files import Files, Inverse, Stat
from computer_linker.errors import NotFound
from computer_linker.model.paths import RootedPath
from computer_linker.undo.journal import Entry, Journal


@dataclass(frozen=True, slots=True)
class _Before:
    path: RootedPath
    kept: str | None
    stat: Stat | None


class Snapshot:
    """The state of some files before a program runs. `keep` them, run it, `commit` what it did."""

    def __init__(self, journal: Journal, files: Files, entry: Entry) -> None:
        self._journal = journal
        self._files = files
        self._entry = entry
        self._before: list[_Before] = []

    async def keep(self, *paths: RootedPath) -> None:
        """Keep files as they are now; one that does not exist is remembered as absent."""
        for path in paths:
            kept, stat = await self._files.keep(path, self._entry)
            self._before.append(_Before(path, kept, stat))

    async def commit(self) -> list[RootedPath]:
        """Record what changed, so that file.undo of this operation takes it back; gives the changed paths."""
        steps: list[Inverse] = []
        changed: list[RootedPath] = []
        for before in self._before:
            now = await self._now(before.path)
            if before.stat is not None and before.stat.mark.fits(now):
                self._journal.kept.drop([before.kept] if before.kept else [])
                continue
            step = _step(before, now)
            if step is not None:
                steps.append(step)
                changed.append(before.path)
        if steps:
            self._entry.commit(steps)
        return changed

    async def _now(self, path: RootedPath) -> Stat | None:
        try:
            return await self._files.stat(path)
        except NotFound:
            return None

    def drop(self) -> None:
        """Forget everything: the program never ran."""
        self._journal.kept.drop([before.kept for before in self._before if before.kept])


def _step(before: _Before, now: Stat | None) -> Inverse | None:
    where: Inverse = {"root": before.path.root, "path": list(before.path.parts)}
    after: Inverse = {"after": now.mark.to_list()} if now is not None else {}
    if before.kept is not None and before.stat is not None:
        return {"do": "restore", **where, "kept": before.kept, "bytes": before.stat.size, **after}
    if before.stat is None and now is not None:
        return {"do": "remove", **where, **after}
    return None
