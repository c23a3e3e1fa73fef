"""This machine's files."""

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import anyio.to_thread

from computer_linker.computer.facets.files import (
    Change,
    Changed,
    Gate,
    Keeper,
    Listing,
    Piece,
    Stat,
    Tree,
    Window,
)
from computer_linker.computer.facets.lines import MAX_REPLY
from computer_linker.computer.local.portable.files_change import Batch
from computer_linker.computer.local.portable.files_open import Opener, stat_of
from computer_linker.computer.local.portable.files_read import (
    MAX_HASHED,
    SMALL,
    Memory,
    Reader,
    Survey,
    key_of,
    survey,
)
from computer_linker.computer.local.portable.files_stage import Bench
from computer_linker.computer.local.portable.files_walk import list_folder, walk_tree
from computer_linker.computer.local.portable.roots import HOLD, Roots
from computer_linker.errors import LimitExceeded
from computer_linker.model.paths import RootedPath

T = TypeVar("T")
Halted = Callable[[], bool]


class LocalFiles:
    """Files beneath held roots. Small work runs at once on the event loop, larger work in a worker thread."""

    def __init__(self, *, by_kernel: bool | None = None) -> None:
        self.roots = Roots()
        self.opener = Opener(self.roots, by_kernel=by_kernel)
        self.memory = Memory()
        self._swept: set[tuple[int, int]] = set()

    def protect(self, state: Path) -> None:
        """Never open the service's own state through a scope that happens to contain it."""
        self.roots.protect(state)

    async def aclose(self) -> None:
        self.roots.close()

    async def stat(self, path: RootedPath) -> Stat:
        return self.opener.stat(path)

    async def sha256(self, path: RootedPath) -> str:
        descriptor, found, _ = self.opener.open_regular(path)
        known = self.memory.get(key_of(found))
        if known is not None:
            os.close(descriptor)
            return known.sha256
        return (await _in_thread(lambda halted: self._surveyed(descriptor, found, halted, close=True))).sha256

    async def read(self, path: RootedPath, window: Window) -> Piece:
        descriptor, found, _ = self.opener.open_regular(path)
        if found.st_size <= SMALL or (window.max_bytes <= SMALL and self.memory.get(key_of(found)) is not None):
            return self._read(descriptor, found, window, _never)
        return await _in_thread(lambda halted: self._read(descriptor, found, window, halted))

    async def read_whole(self, path: RootedPath, limit: int) -> tuple[bytes, Stat]:
        descriptor, found, _ = self.opener.open_regular(path)
        try:
            if found.st_size > limit:
                raise LimitExceeded(f"{path.shown} is larger than {limit} bytes.", path=path.shown, size=found.st_size)
            data = os.pread(descriptor, found.st_size, 0)
            return data, stat_of(found)
        finally:
            os.close(descriptor)

    async def list_folder(
        self, path: RootedPath, *, max_results: int, include_hidden: bool = True, after: str | None = None
    ) -> Listing:
        return await _in_thread(
            lambda _: list_folder(
                self.opener, path, max_results=max_results, include_hidden=include_hidden, after=after
            )
        )

    async def tree(
        self, path: RootedPath, *, max_depth: int, max_entries: int, gitignore: bool, max_bytes: int = MAX_REPLY
    ) -> Tree:
        return await _in_thread(
            lambda halted: walk_tree(
                self.opener,
                path,
                max_depth=max_depth,
                max_entries=max_entries,
                max_bytes=max_bytes,
                gitignore=gitignore,
                halted=halted,
            )
        )

    async def change(self, changes: Sequence[Change], *, gate: Gate, keeper: Keeper | None = None) -> list[Changed]:
        batch = await self._prepared(changes, keeper)
        try:
            await gate()
            if len(changes) == 1:
                _commit(batch, keeper)
            else:
                # Not abandoned on cancellation: once begun, all of it happens or none.
                await anyio.to_thread.run_sync(_commit, batch, keeper)
            if batch.is_unfinished:
                await anyio.to_thread.run_sync(batch.finish)
            return batch.results
        finally:
            batch.close()

    async def rehearse(self, changes: Sequence[Change], *, keeper: Keeper | None = None) -> None:
        (await self._prepared(changes, keeper)).close()

    def open_folder(self, path: RootedPath) -> int:
        return self.opener.open(path, HOLD)[0]

    async def _prepared(self, changes: Sequence[Change], keeper: Keeper | None) -> Batch:
        def prepare(halted: Halted) -> Batch:
            batch = Batch(Bench(self.opener, self.memory, keeper, halted, self._swept), changes)
            batch.prepare()
            if halted():
                batch.close()
            return batch

        return await _in_thread(prepare)

    def _read(self, descriptor: int, found: os.stat_result, window: Window, halted: Halted) -> Piece:
        try:
            about = self._about(descriptor, found, halted)
            piece = Reader(descriptor, found.st_size, about).piece(window, found.st_nlink)
            if about is None:
                warning = f"The file is larger than {MAX_HASHED} bytes, so it was not digested."
                return _warned(piece, warning)
            if key_of(os.fstat(descriptor)) != key_of(found):
                return _warned(piece, "The file was changed while it was read.")
            return piece
        finally:
            os.close(descriptor)

    def _about(self, descriptor: int, found: os.stat_result, halted: Halted) -> Survey | None:
        if found.st_size > MAX_HASHED:
            return None
        return self.memory.get(key_of(found)) or self._surveyed(descriptor, found, halted)

    def _surveyed(self, descriptor: int, found: os.stat_result, halted: Halted, *, close: bool = False) -> Survey:
        try:
            about = survey(descriptor, found.st_size, halted)
            if key_of(os.fstat(descriptor)) == key_of(found):
                self.memory.put(key_of(found), about)
            return about
        finally:
            if close:
                os.close(descriptor)


def _commit(batch: Batch, keeper: Keeper | None) -> None:
    if keeper is None:
        batch.commit()
        return
    keeper.begun(batch.steps, batch.leftovers)
    try:
        batch.commit()
    except BaseException:
        keeper.void()
        raise
    keeper.done()


async def _in_thread(work: Callable[[Halted], T]) -> T:
    """Run `work` in a worker thread. On cancellation the caller goes on at once and the work is told to stop."""
    halt = threading.Event()
    try:
        return await anyio.to_thread.run_sync(work, halt.is_set, abandon_on_cancel=True)
    finally:
        halt.set()


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
