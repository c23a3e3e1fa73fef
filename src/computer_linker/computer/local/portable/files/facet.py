"""The files facet of this machine."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import anyio.to_thread

from computer_linker.computer.facets.files import (
    Beside,
    Change,
    Changed,
    EntryField,
    Gate,
    Keeper,
    Listing,
    Piece,
    Stat,
    Tree,
    Window,
)
from computer_linker.computer.facets.lines import MAX_REPLY
from computer_linker.computer.local.portable.files.change import Batch
from computer_linker.computer.local.portable.files.open import Opener, stat_of
from computer_linker.computer.local.portable.files.read import (
    MAX_HASHED,
    SMALL,
    Memory,
    Reader,
    Survey,
    key_of,
    survey,
)
from computer_linker.computer.local.portable.files.stage import Room, Staged, StagingArea
from computer_linker.computer.local.portable.files.walk import list_folder, walk_tree
from computer_linker.computer.local.portable.roots import HOLD, Roots
from computer_linker.errors import Aborted, LimitExceeded
from computer_linker.model.paths import RootedPath
from computer_linker.system import os

T = TypeVar("T")
Halted = Callable[[], bool]


class LocalFiles:
    """Files beneath held roots. Small work runs at once on the event loop, larger work in a worker thread."""

    def __init__(self, *, by_kernel: bool | None = None) -> None:
        self.roots = Roots()
        self.opener = Opener(self.roots, by_kernel=by_kernel)
        self.memory = Memory()
        self._swept: set[tuple[int, int]] = set()
        self._judged: set[Staged] = set()
        self._committing = asyncio.Lock()
        """Held while several changes are made in a worker thread: no other change comes between."""
        self.room = Room()

    def protect(self, state: Path) -> None:
        """Never open the service's own state through a scope that happens to contain it."""
        self.roots.protect(state)
        self.room.keep_for(state)

    async def aclose(self) -> None:
        self.roots.close()

    async def stat(self, path: RootedPath) -> Stat:
        return self.opener.stat(path)

    async def sha256(self, path: RootedPath) -> str:
        descriptor, found, _ = self.opener.open_regular(path)
        known = self.memory.get(key_of(found))
        if known is not None or found.st_size > MAX_HASHED:
            os.close(descriptor)
            if known is not None:
                return known.sha256
            raise LimitExceeded(f"{path.shown} is too large to digest.", path=path.shown, maxBytes=MAX_HASHED)
        return (await _handed(descriptor, lambda halted: self._surveyed(descriptor, found, halted))).sha256

    async def read(self, path: RootedPath, window: Window) -> Piece:
        descriptor, found, _ = self.opener.open_regular(path)
        if found.st_size <= SMALL or (window.max_bytes <= SMALL and self.memory.get(key_of(found)) is not None):
            try:
                return self._read(descriptor, found, window, _never)
            finally:
                os.close(descriptor)
        return await _handed(descriptor, lambda halted: self._read(descriptor, found, window, halted))

    async def read_whole(self, path: RootedPath, limit: int) -> tuple[bytes, Stat]:
        descriptor, found, _ = self.opener.open_regular(path)
        if found.st_size > limit:
            os.close(descriptor)
            raise LimitExceeded(f"{path.shown} is larger than {limit} bytes.", path=path.shown, size=found.st_size)
        if found.st_size > SMALL:
            data = await _handed(descriptor, lambda _: os.pread(descriptor, found.st_size, 0))
            return data, stat_of(found)
        try:
            return os.pread(descriptor, found.st_size, 0), stat_of(found)
        finally:
            os.close(descriptor)

    async def list_folder(
        self,
        path: RootedPath,
        *,
        max_results: int,
        include_hidden: bool = True,
        after: str | None = None,
        fields: list[EntryField] | None = None,
    ) -> Listing:
        return await _in_thread(
            lambda _: list_folder(
                self.opener, path, max_results=max_results, include_hidden=include_hidden, after=after, fields=fields
            )
        )

    async def tree(
        self,
        path: RootedPath,
        *,
        max_depth: int,
        max_entries: int,
        gitignore: bool,
        max_bytes: int = MAX_REPLY,
        after: tuple[str, ...] | None = None,
    ) -> Tree:
        return await _in_thread(
            lambda halted: walk_tree(
                self.opener,
                path,
                max_depth=max_depth,
                max_entries=max_entries,
                max_bytes=max_bytes,
                gitignore=gitignore,
                after=after,
                halted=halted,
            )
        )

    async def change(
        self, changes: Sequence[Change], *, gate: Gate, keeper: Keeper | None = None, beside: Beside | None = None
    ) -> list[Changed]:
        batch = await self._prepared(changes, keeper, beside)
        try:
            await gate()
            while self._committing.locked():
                async with self._committing:
                    pass
                await gate()
            if len(changes) == 1:
                _commit(batch, keeper)
            else:
                async with self._committing:
                    # Shielded from cancellation: once begun, all of it happens or none.
                    await anyio.to_thread.run_sync(_commit, batch, keeper)
            if batch.is_unfinished:
                await anyio.to_thread.run_sync(batch.finish)
            return batch.results
        finally:
            batch.close()

    async def rehearse(self, changes: Sequence[Change], *, keeper: Keeper | None = None) -> None:
        (await self._prepared(changes, keeper)).close()

    def open_file(self, path: RootedPath) -> int:
        return self.opener.open_regular(path)[0]

    def open_folder(self, path: RootedPath) -> int:
        return self.opener.open(path, HOLD)[0]

    async def _prepared(self, changes: Sequence[Change], keeper: Keeper | None, beside: Beside | None = None) -> Batch:
        """Prepare everything; when the caller is cancelled meanwhile, nothing is left behind."""
        halt = threading.Event()
        batch = Batch(self._area(keeper, halt.is_set), changes)
        if beside is None or not batch.is_small:
            return await _aside(batch, halt, (batch.prepare, batch.settle), _in_worker)
        batch.prepare()
        return await _aside(batch, halt, (batch.settle,), beside)

    def _area(self, keeper: Keeper | None, halted: Halted) -> StagingArea:
        return StagingArea(self.opener, self.memory, keeper, halted, self._swept, self.room, judged=self._judged)

    def _read(self, descriptor: int, found: os.stat_result, window: Window, halted: Halted) -> Piece:
        about = self._about(descriptor, found, halted)
        piece = Reader(descriptor, found.st_size, about).piece(window, found.st_nlink)
        if about is None:
            return _warned(piece, f"The file is larger than {MAX_HASHED} bytes, so it was not digested.")
        if key_of(os.fstat(descriptor)) != key_of(found):
            return _warned(piece, "The file was changed while it was read.")
        return piece

    def _about(self, descriptor: int, found: os.stat_result, halted: Halted) -> Survey | None:
        if found.st_size > MAX_HASHED:
            return None
        return self.memory.get(key_of(found)) or self._surveyed(descriptor, found, halted)

    def _surveyed(self, descriptor: int, found: os.stat_result, halted: Halted) -> Survey:
        about = survey(descriptor, found.st_size, halted)
        if key_of(os.fstat(descriptor)) == key_of(found):
            self.memory.put(key_of(found), about)
        return about


def _commit(batch: Batch, keeper: Keeper | None) -> None:
    batch.refresh()
    if keeper is None:
        batch.commit()
        return
    keeper.begun(batch.steps, batch.leftovers)
    try:
        batch.commit()
    except BaseException:
        keeper.void()
        raise
    # Before it is marked done: after a crash, recovery removes the leftovers of a change that is marked begun.
    batch.tidy()
    keeper.done()


async def _in_worker(work: Callable[[], None]) -> None:
    await anyio.to_thread.run_sync(work, abandon_on_cancel=True)


async def _aside(batch: Batch, halt: threading.Event, steps: Sequence[Callable[[], None]], run: Beside) -> Batch:
    """Prepare in a thread that stops and cleans up when the caller is cancelled."""
    ready: list[Batch] = []
    lock = threading.Lock()

    def work() -> None:
        for step in steps:
            step()
        with lock:
            if halt.is_set():
                batch.close()
            else:
                ready.append(batch)

    try:
        await run(work)
    except BaseException:
        with lock:
            halt.set()
            for done in ready:
                done.close()
        raise
    return batch


async def _in_thread(work: Callable[[Halted], T]) -> T:
    """Run `work` in a worker thread. On cancellation the caller returns at once and the work is signalled to stop."""
    halt = threading.Event()
    try:
        return await anyio.to_thread.run_sync(work, halt.is_set, abandon_on_cancel=True)
    finally:
        halt.set()


async def _handed(descriptor: int, work: Callable[[Halted], T]) -> T:
    """Run `work` on a descriptor in a worker thread; it is closed exactly once, also when the work never ran."""
    claim = threading.Lock()

    def run(halted: Halted) -> T:
        if not claim.acquire(blocking=False):
            raise Aborted("The work was cancelled before it began.")
        try:
            return work(halted)
        finally:
            os.close(descriptor)

    try:
        return await _in_thread(run)
    finally:
        if claim.acquire(blocking=False):
            os.close(descriptor)


def _never() -> bool:
    return False


def _warned(piece: Piece, warning: str) -> Piece:
    return Piece(
        piece.content,
        piece.size,
        piece.sha256,
        piece.start_line,
        piece.next_line,
        piece.next_byte,
        piece.links,
        (*piece.warnings, warning),
    )
