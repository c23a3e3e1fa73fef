"""Maps of source trees: files ranked by how others refer to them, cached while nothing in the tree changes."""

import json
import sys
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial
from typing import Self

import anyio
import anyio.to_thread

from computer_linker.errors import Aborted, ExecutionFailed
from computer_linker.model.paths import PathRules
from computer_linker.providers.child import ProcessGroup, Spec, fenced, in_process_group
from computer_linker.providers.held import Held
from computer_linker.providers.language.tracked import Tracked
from computer_linker.providers.search.engine import Search
from computer_linker.providers.search.query import Breadth, NameQuery
from computer_linker.providers.symbols.extract import Symbol
from computer_linker.providers.symbols.languages import language_of
from computer_linker.providers.symbols.symbols import Symbols
from computer_linker.services import Services
from computer_linker.system import descriptor_path

MAX_FILES = 50_000
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}
_MEMORY = 1 << 30
_MAX_MAPS = 4
_MAX_ANSWER = 64 << 20
_PARSED = 64
"""Files parsed for one map; more do not fit the largest budget."""


@dataclass(slots=True)
class Ranked:
    """The files of a tree, the most referred to first, and how many files use each name."""

    files: list[str] = field(default_factory=list)
    uses: dict[str, int] = field(default_factory=dict)
    symbols: dict[str, list[Symbol]] = field(default_factory=dict)
    """The definitions of the first files."""
    is_cut: bool = False


@dataclass(slots=True)
class _Kept:
    tracked: Tracked
    ranked: Ranked | None = None
    busy: anyio.Lock = field(default_factory=anyio.Lock)


class CodeMaps:
    """The maps of recently used folders."""

    def __init__(self, search: Search, symbols: Symbols) -> None:
        self._search, self._symbols = search, symbols
        self._kept: OrderedDict[tuple[str, PathRules], _Kept] = OrderedDict()

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services.use(Search), services.use(Symbols))

    async def aclose(self) -> None:
        for kept in self._kept.values():
            kept.tracked.close()
        self._kept.clear()

    async def ranked(self, folder: Held) -> Ranked:
        """The ranked files below a folder; the last answer while nothing below it changed."""
        key = (descriptor_path(folder.fd), folder.path.rules)
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = _Kept(Tracked(key[0], PathRules()))
            while len(self._kept) > _MAX_MAPS:
                # One that is in use finishes its work; its tree is then only listed anew.
                self._kept.popitem(last=False)[1].tracked.close()
        self._kept.move_to_end(key)
        async with kept.busy:
            if kept.ranked is not None and kept.tracked.is_quiet():
                return kept.ranked
            changes = await anyio.to_thread.run_sync(kept.tracked.changes)
            if kept.ranked is None or changes or kept.tracked.is_partial:
                kept.ranked = await self._fresh(folder)
            return kept.ranked

    async def _fresh(self, folder: Held) -> Ranked:
        page = await self._search.names(folder, NameQuery(Breadth()), None, MAX_FILES)
        paths = [path for path in page.paths if language_of(path.decode("utf-8", "replace")) is not None]
        ranked = await in_process_group(partial(_rank, folder, paths))
        ranked.is_cut = page.next_position is not None
        ranked.symbols = await self._symbols.of_files(folder, ranked.files[:_PARSED])
        return ranked


def _rank(folder: Held, paths: list[bytes], group: ProcessGroup) -> Ranked:
    if not paths:
        return Ranked()
    argv = [sys.executable, "-I", "-m", "computer_linker.providers.symbols.ranking"]
    spec = Spec(argv, folder.cwd, _ENVIRONMENT, stdin=b"\0".join(paths), max_memory=_MEMORY)
    with group.running(fenced(spec, [folder.fd])) as child:
        answer, is_cut = child.read_all(_MAX_ANSWER)
        code, errors = child.finish()
    if group.is_cancelled:
        raise Aborted("The caller no longer waits for this.")
    if code != 0 or is_cut:
        raise ExecutionFailed("The files could not be ranked.", detail=errors[-300:].decode("utf-8", "replace"))
    found = json.loads(answer)
    return Ranked(found["files"], found["uses"])
