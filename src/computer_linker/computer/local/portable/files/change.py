"""Atomic batches: all changes are prepared, then made in order, and all are reverted when one fails."""

import errno
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, assert_never

from computer_linker.computer.facets.files import (
    Change,
    Changed,
    Copy,
    Inverse,
    MakeFolder,
    Move,
    Remove,
    Restore,
    Write,
)
from computer_linker.computer.local.faults import fault
from computer_linker.computer.local.portable.files.exchange import StagedExchange
from computer_linker.computer.local.portable.files.folder import StagedFolder
from computer_linker.computer.local.portable.files.move import StagedMove, StagedTreeCopy
from computer_linker.computer.local.portable.files.open import FOLDER, OpenedParent
from computer_linker.computer.local.portable.files.remove import StagedRemove, StagedRestore
from computer_linker.computer.local.portable.files.repositories import refuse_git_folder
from computer_linker.computer.local.portable.files.stage import Staged, StagingArea
from computer_linker.computer.local.portable.files.trees import refuse_too_large
from computer_linker.computer.local.portable.files.write import StagedWrite
from computer_linker.errors import ExecutionFailed, InvalidRequest, LinkError
from computer_linker.model.paths import RootedPath
from computer_linker.policy.names import GIT_NAMES
from computer_linker.system import os

S = TypeVar("S", bound=Staged)
_CHUNK = 1 << 20
_SMALL = 1 << 16


class Batch:
    """Changes that succeed or fail together."""

    def __init__(self, area: StagingArea, changes: Sequence[Change]) -> None:
        self.area = area
        self.changes = changes
        self.staged: list[Staged] = []
        self.causes: list[Change] = []
        """The change that each of these is for, of several the first."""
        self._is_mixed = False
        """True when the changes were staged in another order than they came."""

    def prepare(self) -> None:
        """Stage every change. Nothing is changed yet; on failure nothing is left behind."""
        try:
            for change, run in _runs(self.changes):
                self._at(change, partial(self._exchange, run) if len(run) > 1 else partial(self._stage, change))
                if isinstance(change, Move | Remove):
                    self.area.vacated.add((change.path.root, change.path.parts))
            if len(self.changes) > 1:
                self._refuse_repositories()
        except BaseException:
            self.close()
            raise

    def _refuse_repositories(self) -> None:
        """Refuse changes that only together make a folder a repository for git."""
        made: dict[RootedPath, set[str]] = {}
        # A run of exchanged files has none of these names.
        for path in (staged.place.path for staged in self.staged):
            for at, name in enumerate(path.parts):
                if name in GIT_NAMES and not path.rules.allow_protected:
                    made.setdefault(replace(path, parts=path.parts[:at]), set()).add(name)
        for folder, names in made.items():
            if len(names) > 1:
                refuse_git_folder(folder, names | {name for name in GIT_NAMES - names if self._has(folder.child(name))})

    def _has(self, path: RootedPath) -> bool:
        try:
            self.area.opener.stat(path)
        except LinkError:
            return False
        return True

    def settle(self) -> None:
        """Sync to disk where a change needs it. On failure nothing is left behind."""
        try:
            for change, staged in zip(self.causes, self.staged, strict=True):
                self._at(change, staged.settle)
        except BaseException:
            self.close()
            raise

    @property
    def is_small(self) -> bool:
        """True for one short write: preparing it costs less than a thread."""
        change = self.changes[0]
        return (
            len(self.changes) == 1
            and isinstance(change, Write)
            and isinstance(change.content, bytes)
            and len(change.content) <= _SMALL
            and not change.append
            and change.if_sha256 is None
        )

    @property
    def steps(self) -> list[Inverse]:
        return [step for staged in reversed(self.staged) for step in staged.steps]

    @property
    def leftovers(self) -> list[dict[str, Any]]:
        return [leftover for staged in self.staged for leftover in staged.leftovers]

    @property
    def results(self) -> list[Changed]:
        found = [result for staged in self.staged for result in staged.results]
        if self._is_mixed:
            places = {change.path: number for number, change in enumerate(self.changes)}
            found.sort(key=lambda result: places[result.path])
        return found

    def refresh(self) -> None:
        """Look again at what the changes replace. Nothing is changed yet."""
        for change, staged in zip(self.causes, self.staged, strict=True):
            self._at(change, staged.refresh)

    def commit(self) -> None:
        """Make the changes in order. When one fails, those before it are reverted and the error is raised."""
        for number, (change, staged) in enumerate(zip(self.causes, self.staged, strict=True)):
            try:
                self._at(change, partial(self._commit, staged))
            except BaseException:
                for done in reversed(self.staged[: number + 1]):
                    self._at(change, done.undo)
                raise

    def _commit(self, staged: Staged) -> None:
        """Make one change. Changes are made one at a time, but since this one was judged others may have been."""
        for place in staged.places:
            self.area.opener.judge_again(place)
        for other in list(self.area.judged):
            other.notice(staged)
        staged.commit()

    def tidy(self) -> None:
        """After all changes: remove the data for an immediate revert. From here on only the undo journal can revert."""
        for staged in self.staged:
            staged.tidy()

    @property
    def is_unfinished(self) -> bool:
        return any(staged.has_more for staged in self.staged)

    def finish(self) -> None:
        for staged in self.staged:
            staged.finish()

    def close(self) -> None:
        for staged in self.staged:
            staged.close()
        self.staged.clear()
        self.causes.clear()

    def _exchange(self, run: list[Restore]) -> None:
        """Stage restores of one folder together, as far as that can be."""
        exchange = StagedExchange.of(self.area, run[0].path.parent)
        if exchange is not None:
            run = self._add(exchange, run[0]).prepare(run)
            self._is_mixed = self._is_mixed or bool(run)
        for change in run:
            self._at(change, partial(self._stage, change))

    def _stage(self, change: Change) -> None:
        match change:
            case Write():
                self._write(change)
            case MakeFolder():
                self._add_new(StagedFolder(self._place(change.path, change.parents), change), change).prepare()
            case Remove():
                self._add(StagedRemove(self._place(change.path), self.area, change), change).prepare()
            case Move():
                source = self._place(change.path)
                try:
                    place = self._place(change.destination, change.create_parents)
                except BaseException:
                    source.close()
                    raise
                self._add(StagedMove(source, place, self.area, change), change).prepare()
            case Copy():
                self._copy(change)
            case Restore():
                place = self._place(change.path, True)
                self._add(StagedRestore(place, self.area, change), change).prepare()
            case _:
                assert_never(change)

    def _write(self, change: Write) -> None:
        find = self.area.opener.place if change.must_be_new else self.area.opener.followed_place
        place = find(change.path, create_parents=change.create_parents)
        size = len(change.content) if isinstance(change.content, bytes) else 0
        self._add_new(StagedWrite(place, self.area, change), change, size).prepare(needs_spare=len(self.changes) > 1)

    def _copy(self, change: Copy) -> None:
        opener = self.area.opener
        found = opener.stat(change.path)
        if found.type == "symlink" or found.type == "other":
            raise InvalidRequest(
                f"{change.path.shown} is a link or special file; only files and folders are copied.",
                path=change.path.shown,
            )
        if found.type == "directory":
            source, real = opener.open(change.path, FOLDER)
            try:
                place = self._place(change.destination, change.create_parents)
                self._add_new(StagedTreeCopy(place, self.area, change), change).prepare(source, real)
            finally:
                os.close(source)
            return
        source, about, _ = opener.open_regular(change.path)
        try:
            refuse_too_large(about.st_size, change.path)
            write = Write(
                change.destination,
                lambda: _pieces(source, about.st_size),
                must_be_new=not change.overwrite,
                create_parents=change.create_parents,
                is_executable=bool(about.st_mode & 0o100),
            )
            self._write(write)
            self.staged[-1].result.action = "copied"
            if about.st_nlink > 1:
                shown = change.path.shown
                warning = (
                    f"{shown} is a hardlink: {about.st_nlink} names lead to it, and some may lie outside the scope."
                )
                self.staged[-1].result.warnings.append(warning)
        finally:
            os.close(source)

    def _place(self, path: Any, create_parents: bool = False) -> OpenedParent:
        return self.area.opener.place(path, create_parents=create_parents)

    def _add(self, staged: S, cause: Change) -> S:
        self.staged.append(staged)
        self.causes.append(cause)
        return staged

    def _add_new(self, staged: S, cause: Change, size: int = 0) -> S:
        """Add a change that needs additional disk space."""
        self._add(staged, cause)
        self.area.room.check(staged.place.folder, staged.place.path, size)
        return staged

    def _at(self, change: Change, act: Callable[[], None]) -> None:
        """Convert an OS error to a wire error with the path it happened at."""
        try:
            act()
        except OSError as error:
            raise _named(error, change) from error


def _runs(changes: Sequence[Change]) -> Iterator[tuple[Change, list[Restore]]]:
    """The changes in their order; those that restore names in one folder together, by the first of them."""
    run: list[Restore] = []
    for change in changes:
        is_next = isinstance(change, Restore) and (not run or _folder(change) == _folder(run[0]))
        if run and not is_next:
            yield run[0], run
            run = []
        if isinstance(change, Restore):
            run.append(change)
        else:
            yield change, []
    if run:
        yield run[0], run


def _folder(change: Restore) -> tuple[str, tuple[str, ...]]:
    return change.path.root, change.path.parts[:-1]


def _named(error: OSError, change: Change) -> LinkError:
    if error.errno == errno.EXDEV:
        return ExecutionFailed(
            f"{change.path.shown} and its destination are on different file systems. Copy it, then delete it.",
            path=change.path.shown,
        )
    if error.errno == errno.EEXIST and isinstance(change, Move | Copy):
        return fault(error, change.destination.shown)
    return fault(error, change.path.shown)


def _pieces(source: int, size: int) -> Iterator[bytes]:
    at = 0
    while at < size and (data := os.pread(source, min(_CHUNK, size - at), at)):
        yield data
        at += len(data)
