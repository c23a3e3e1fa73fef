"""Symbols of a tree or a file: ripgrep finds candidate files, the index or a parse verifies them."""

import hashlib
import json
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from computer_linker.errors import InvalidRequest, LinkError, PermissionDenied, ProviderUnavailable
from computer_linker.extras import remedy
from computer_linker.model.paths import RootedPath
from computer_linker.providers.child import ProcessGroup, in_process_group
from computer_linker.providers.held import Held, held
from computer_linker.providers.search.engine import Search
from computer_linker.providers.search.visible import shared
from computer_linker.providers.symbols.extract import Symbol
from computer_linker.providers.symbols.languages import BY_NAME, VERSION, grammar_of, language_of
from computer_linker.providers.symbols.parsing import Source, parse
from computer_linker.services import Services
from computer_linker.system import os

# Cache of parsed symbols by content: an unchanged or renamed file is not parsed again.

_MAX_FILES = 200_000
_MAX_SEEN = 20_000
Mark = tuple[str, int, int, int, int, int]
"""Root, device, inode, size, and the times of the last change of content and of the file itself."""


def digest_of(content: bytes, language: str) -> bytes:
    """The cache key of a content in a language, for the present tables."""
    return hashlib.blake2b(content, digest_size=16, salt=f"{VERSION}:{language}".encode()[:16]).digest()


class Index:
    """A table in the state folder; its loss only costs time."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = folder / "symbols.sqlite"
        self._lock = threading.Lock()
        self._seen: OrderedDict[Mark, bytes] = OrderedDict()
        self._table = self._opened()

    def seen(self, mark: Mark) -> bytes | None:
        """The digest of a file in exactly this state, if it was read before."""
        with self._lock:
            return self._seen.get(mark)

    def remember(self, mark: Mark, digest: bytes) -> None:
        with self._lock:
            self._seen[mark] = digest
            while len(self._seen) > _MAX_SEEN:
                self._seen.popitem(last=False)

    def raw(self, digests: Iterable[bytes]) -> dict[bytes, bytes]:
        """The stored JSON of those digests that are known."""
        wanted = list(set(digests))
        found: dict[bytes, bytes] = {}
        with self._lock:
            for at in range(0, len(wanted), 500):
                part = wanted[at : at + 500]
                marks = ",".join("?" * len(part))
                found.update(self._table.execute(f"SELECT digest, symbols FROM files WHERE digest IN ({marks})", part))  # noqa: S608 - only question marks
        return found

    def store(self, parsed: dict[bytes, list[Symbol]]) -> None:
        """Store parsed symbols."""
        now = int(time.time())
        rows = [(digest, encoded(symbols), now) for digest, symbols in parsed.items()]
        with self._lock, self._table:
            self._table.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", rows)
            (count,) = self._table.execute("SELECT count(*) FROM files").fetchone()
            if count > _MAX_FILES:
                self._table.execute(
                    "DELETE FROM files WHERE digest IN (SELECT digest FROM files ORDER BY stored LIMIT ?)",
                    (count // 4,),
                )

    def close(self) -> None:
        with self._lock:
            self._table.close()

    def _opened(self) -> sqlite3.Connection:
        try:
            return self._connected()
        except sqlite3.DatabaseError:
            # A damaged index is discarded, because everything in it can be parsed again.
            self._path.unlink(missing_ok=True)
            return self._connected()

    def _connected(self) -> sqlite3.Connection:
        self._path.touch(mode=0o600)
        table = sqlite3.connect(self._path, check_same_thread=False, timeout=10)
        table.execute("PRAGMA journal_mode = WAL")
        table.execute("PRAGMA synchronous = OFF")
        table.execute("PRAGMA cache_size = -2000")
        table.execute(
            "CREATE TABLE IF NOT EXISTS files (digest BLOB PRIMARY KEY, symbols BLOB NOT NULL, stored INTEGER NOT NULL) "
            "WITHOUT ROWID"
        )
        return table


def encoded(symbols: list[Symbol]) -> bytes:
    return json.dumps(symbols, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def decoded(raw: bytes) -> list[Symbol]:
    return [Symbol(*fields) for fields in json.loads(raw)]


_MAX_CANDIDATES = 20_000
_MAX_FILE = 2 << 20
_BATCH_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class SymbolQuery:
    """A part of a name; case counts when the query has a capital letter."""

    text: str
    kind: str | None = None
    language: str | None = None
    most: int = 50

    @property
    def ignores_case(self) -> bool:
        return self.text == self.text.lower()

    def fits(self, symbol: Symbol) -> bool:
        name = symbol.name.lower() if self.ignores_case else symbol.name
        return self.text in name and (self.kind is None or symbol.kind == self.kind)

    def rank(self, symbol: Symbol) -> int:
        """Whole names first, then beginnings, then the rest."""
        name = symbol.name.lower() if self.ignores_case else symbol.name
        return 0 if name == self.text else 1 if name.startswith(self.text) else 2


@dataclass(slots=True)
class FoundSymbols:
    symbols: list[tuple[str, Symbol]] = field(default_factory=list)
    is_cut: bool = False
    missing: set[str] = field(default_factory=set)
    failed: int = 0


class Symbols:
    """The symbol queries of one service, with their index."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._index: Index | None = None

    @classmethod
    def open(cls, services: Services) -> "Symbols":
        return cls(services.home / "index")

    async def aclose(self) -> None:
        if self._index is not None:
            self._index.close()

    async def search(self, search: Search, folder: Held, query: SymbolQuery) -> FoundSymbols:
        """Definitions below a folder whose name contains the text."""
        _check_parser()
        files, more = await search.holding(folder, query.text, ignore_case=query.ignores_case, most=_MAX_CANDIDATES)
        paths = [os.fsdecode(path) for path in sorted(files)]
        found = await in_process_group(partial(self._search, folder, paths, query))
        found.is_cut = found.is_cut or more
        return found

    async def outline(self, path: RootedPath) -> FoundSymbols:
        """Every definition of one file."""
        _check_parser()
        if language_of(path.name) is None:
            raise InvalidRequest(f"{path.shown} is not in a language this service knows.", languages=sorted(BY_NAME))
        found = await in_process_group(partial(self._outline, path))
        if found.missing:
            raise ProviderUnavailable(f"The grammar for {', '.join(found.missing)} is not installed. {remedy('code')}")
        return found

    async def of_files(self, folder: Held, paths: list[str]) -> dict[str, list[Symbol]]:
        """The definitions of some files below a folder; those that cannot be parsed are left out."""
        _check_parser()
        return await in_process_group(partial(self._of_files, folder, paths))

    def _of_files(self, folder: Held, paths: list[str], group: ProcessGroup) -> dict[str, list[Symbol]]:
        closed = shared(folder, {os.fsencode(path) for path in paths}).closed
        wanted = [path for path in paths if os.fsencode(path) not in closed]
        return {path: decoded(raw) for path, raw in self._raw(folder, wanted, FoundSymbols(), group)}

    def _search(self, folder: Held, paths: list[str], query: SymbolQuery, group: ProcessGroup) -> FoundSymbols:
        found = FoundSymbols()
        wanted = [path for path in paths if _is_wanted(path, query)]
        needle = query.text.encode("utf-8", "replace")
        hits: list[tuple[int, str, Symbol]] = []
        for path, raw in self._raw(folder, wanted, found, group):
            if needle not in (raw.lower() if query.ignores_case else raw):
                continue
            hits += [(query.rank(symbol), path, symbol) for symbol in decoded(raw) if query.fits(symbol)]
        closed = shared(folder, {os.fsencode(path) for _, path, _ in hits}).closed
        hits = [hit for hit in hits if os.fsencode(hit[1]) not in closed]
        hits.sort(key=lambda hit: (hit[0], hit[1], hit[2].line))
        found.is_cut = len(hits) > query.most
        found.symbols = [(path, symbol) for _, path, symbol in hits[: query.most]]
        return found

    def _outline(self, path: RootedPath, group: ProcessGroup) -> FoundSymbols:
        found = FoundSymbols()
        with held(path.parent) as folder, held(path) as file:
            if file.is_folder:
                raise InvalidRequest(f"{path.shown} is a folder; code.outline takes a file.", path=path.shown)
            if os.fstat(file.fd).st_size > _MAX_FILE:
                raise InvalidRequest(f"{path.shown} is larger than {_MAX_FILE} bytes.", path=path.shown)
            if shared(file, {os.fsencode(path.name)}).closed:
                why = f"{path.shown} is a hardlink to something this scope does not open."
                raise PermissionDenied(why, path=path.shown, rule="hardlink")
            for _, raw in self._raw(folder, [path.name], found, group):
                found.symbols = [(path.shown, symbol) for symbol in decoded(raw)]
        return found

    def _raw(
        self, folder: Held, paths: list[str], found: FoundSymbols, group: ProcessGroup
    ) -> Iterator[tuple[str, bytes]]:
        """The stored symbols of each file, parsed first where they are not known."""
        index = self._index = self._index or Index(self._folder)
        digests = {path: digest for path in paths if (digest := self._known_digest(index, folder, path)) is not None}
        known = index.raw(digests.values())
        unknown = [path for path in paths if digests.get(path) not in known]
        for batch in _batches(folder, unknown):
            keys = {path: digest_of(content, language) for path, language, content, _ in batch}
            for path, _, _, mark in batch:
                index.remember(mark, keys[path])
            stored = index.raw(keys.values())
            sources = {
                keys[path]: Source(keys[path], language, content)
                for path, language, content, _ in batch
                if keys[path] not in stored
            }
            if sources:
                done = parse(list(sources.values()), group)
                index.store(done.symbols)
                found.missing |= done.missing
                found.failed += done.failed
                stored = index.raw(keys.values())
            known.update(stored)
            digests.update(keys)
        for path in paths:
            raw = known.get(digests.get(path, b""))
            if raw is not None:
                yield path, raw

    def _known_digest(self, index: Index, folder: Held, path: str) -> bytes | None:
        try:
            info = os.stat(path, dir_fd=folder.fd, follow_symlinks=False)
        except OSError:
            return None
        return index.seen(_mark(folder, info))


def _mark(folder: Held, info: os.stat_result) -> Mark:
    return folder.path.root, info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _batches(folder: Held, paths: list[str]) -> Iterator[list[tuple[str, str, bytes, Mark]]]:
    """Files with their language, content and state, some megabytes at a time."""
    batch: list[tuple[str, str, bytes, Mark]] = []
    size = 0
    for path in paths:
        if language_of(path) is None:
            continue
        try:
            with held(folder.path.child(*path.split("/"))) as file:
                info = os.fstat(file.fd)
                if file.is_folder or info.st_size > _MAX_FILE:
                    continue
                content = os.read(file.fd, _MAX_FILE)
        except (LinkError, OSError):
            continue
        language = grammar_of(path, content)
        assert language is not None, "checked before"
        batch.append((path, language.name, content, _mark(folder, info)))
        size += len(content)
        if size > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _is_wanted(path: str, query: SymbolQuery) -> bool:
    language = language_of(path)
    return language is not None and (query.language is None or language.name == query.language)


def _check_parser() -> None:
    if find_spec("tree_sitter") is None:
        raise ProviderUnavailable(f"tree-sitter is not installed. {remedy('code')}", extra="code")
