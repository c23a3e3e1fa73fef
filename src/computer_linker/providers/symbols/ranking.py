"""The ranking child process: which files of a tree the others refer to, by the names they define and use.

stdin has paths below the working folder, each ended by NUL; stdout gets one line of JSON. Definitions are found by the shape of
their line, and uses in what a file imports, or by name where a language imports no names: precise enough to rank, and many times
as fast as parsing. What is shown of a file is parsed.
"""

import gc
import json
import pickle
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TypeVar

from computer_linker.system import os

T = TypeVar("T")
MAX_FILE = 512 << 10
_PIECE = 64 << 10
"""Read at first: a buffer for the largest file costs more to map than most files cost to read."""
_MIN_NAME = 4
_MOST_DEFINERS = 6
"""A name that more files define does not identify one of them."""
_MOST_EDGES = 16
_ROUNDS = 8
_DAMPING = 0.85
_NAME = rb"([A-Za-z_][A-Za-z0-9_]{%d,})" % (_MIN_NAME - 1)
_LETTERS = bytes(each if (chr(each).isalnum() and each < 128) or each == 95 else 32 for each in range(256))
"""Turns everything that is no part of a name into spaces: splitting then is twice as fast as matching."""


def _after(*keywords: str) -> list["re.Pattern[bytes]"]:
    """Names that follow a keyword. Each pattern begins with its literal, which the engine finds without trying every byte."""
    return [re.compile(re.escape(word.encode()) + rb"[ \t]+" + _NAME) for word in keywords]


_SCRIPT = _after("function", "class", "interface", "type", "enum", "const", "namespace")
_FUNCTION = re.compile(
    rb"^[A-Za-z_][\w:<>,*& \t]{0,80}[ \t*&]" + _NAME + rb"\([^;{}]{0,400}\)[ \t\w]{0,40}\n?\{", re.MULTILINE
)
_BRACED = [*_after("class", "struct", "union", "enum", "interface", "record", "namespace", "#define"), _FUNCTION]
_DEFINITIONS: dict[str, list["re.Pattern[bytes]"]] = {
    **dict.fromkeys(("py", "pyi", "pyw"), _after("def", "class")),
    **dict.fromkeys(("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"), _SCRIPT),
    **dict.fromkeys(("c", "h", "cc", "cpp", "cxx", "hpp", "hh", "hxx", "ipp", "java", "cs"), _BRACED),
    "go": [*_after("func", "type"), re.compile(rb"func \([^)\n]*\) " + _NAME)],
    "rs": _after("fn", "struct", "enum", "union", "trait", "mod", "type", "const", "static", "macro_rules!"),
}
_OTHERS = _after(
    "def", "class", "function", "func", "fun", "struct", "enum", "trait", "interface", "protocol", "object", "module"
)
_IMPORTED = re.compile(rb"import[ \t]+(\([^)]{0,4000}\)|(?:type[ \t]+)?\{[^}]{0,4000}\}|[^\n]{0,400})")
_IMPORTS = {
    "0": [_IMPORTED, re.compile(rb"from[ \t]+\.*(?:\w+\.)*(\w+)")],
    "1": [_IMPORTED]
    + [
        re.compile(rb"%s['\"](?:[^'\"\n]{0,200}/)?([\w-]+)" % word)
        for word in (rb"from[ \t]+", rb"require\(", rb"import\(")
    ],
}
"""By family, what files of Python and JavaScript use of others. These begin with a literal too."""
_PLAIN_WEIGHT = 0.1
"""A name that is a word of English too may only be in a comment."""
_PACKAGES = frozenset((b"__init__", b"index", b"mod"))
_MOST_USERS = 12
_COUNTED = 64
"""Files whose definitions are shown at most: how often each is used is counted in some of the files that refer to them."""
_FAMILIES = {
    name: number
    for number, names in enumerate(
        (
            "py pyi pyw",
            "js jsx mjs cjs ts tsx mts cts",
            "c h cc cpp cxx hpp hh hxx ipp",
            "java kt kts scala sc",
            "rb rake",
            "sh bash",
        )
    )
    for name in names.split()
}
"""Endings of languages whose files use each other's names; every other ending is on its own."""

Edges = list[tuple[int, float]]
Definer = tuple[tuple[int, ...], float]
"""The files that define a name, and what a use of it weighs."""
Definers = dict[str, dict[bytes, Definer]]
"""By family and name."""
Names = tuple[bytes, bytes | None]
"""What a file defines and what it uses, between spaces: an object for each name costs more to send. None where not read."""


def main() -> int:
    """Rank the files of stdin."""
    # This process ends before there is garbage worth a search through all its names.
    gc.disable()
    paths = [path for path in sys.stdin.buffer.read().split(b"\0") if path]
    scanned = {index: names for share in _shared(range(len(paths)), partial(_names, paths)) for index, names in share}
    definers = _definers(scanned, paths)
    edges: list[Edges] = [[] for _ in paths]
    unread = []
    for index, (_, used) in scanned.items():
        if used is None:
            unread.append(index)
        else:
            edges[index] = _edges(index, used.split(), definers.get(_family(paths[index]), {}))
    # These are read again rather than kept: all the words of a large tree would fill the memory.
    for share in _shared(unread, partial(_references, paths, definers)) if unread else ():
        for index, out in share:
            edges[index] = out
    scores = ranked(edges)
    order = sorted(range(len(paths)), key=lambda index: (-scores[index], paths[index]))
    uses = _uses(paths, edges, order[:_COUNTED])
    sys.stdout.write(json.dumps({"files": [os.fsdecode(paths[index]) for index in order], "uses": uses}))
    return 0


def _shared(files: Sequence[int], scan: Callable[[Sequence[int]], T]) -> list[T]:
    """What `scan` finds in each share of the files, one forked process per processor: a fork has what it needs already."""
    count = max(1, min(8, os.cpu_count() or 1, len(files) // 100))
    workers = [_forked(partial(scan, files[at::count])) for at in range(count)]
    found = []
    for pid, answers in workers:
        with open(answers, "rb") as file:
            found.append(pickle.load(file))  # noqa: S301  # of our own fork
        os.waitpid(pid, 0)
    return found


def _forked(work: Callable[[], object]) -> tuple[int, int]:
    """A process that pickles the result into a pipe: its number, and the pipe."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reading)
            with open(writing, "wb") as answers:
                pickle.dump(work(), answers, protocol=5)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    return pid, reading


def _names(paths: Sequence[bytes], share: Sequence[int]) -> list[tuple[int, Names]]:
    """What each file defines, and what it imports."""
    found: list[tuple[int, Names]] = []
    for index in share:
        content = _content(paths[index])
        patterns = _IMPORTS.get(_family(paths[index]))
        used = None
        if patterns is not None:
            imported = b" ".join(part for pattern in patterns for part in pattern.findall(content))
            used = b" ".join(sorted(set(_words(imported))))
        found.append((index, (b" ".join(_defined(paths[index], content)), used)))
    return found


def _references(paths: Sequence[bytes], definers: Definers, share: Sequence[int]) -> list[tuple[int, Edges]]:
    """The strongest references of files whose every word may be one."""
    known = [definers.get(_family(paths[index]), {}) for index in share]
    return [
        (index, _edges(index, sorted(names.keys() & set(_words(_content(paths[index])))), names))
        for index, names in zip(share, known, strict=True)
    ]


def _edges(index: int, words: Sequence[bytes], known: Mapping[bytes, Definer]) -> Edges:
    """The strongest references of a file that uses these names.

    They are sorted: sums of the same numbers differ by their order, and with them the order of files.
    """
    weights: defaultdict[int, float] = defaultdict(float)
    for files, weight in filter(None, map(known.get, words)):
        if index not in files:
            for other in files:
                weights[other] += weight
    return sorted(weights.items(), key=lambda edge: (-edge[1], edge[0]))[:_MOST_EDGES]


def _uses(paths: Sequence[bytes], edges: Sequence[Edges], best: Sequence[int]) -> dict[str, int]:
    """In how many of the files that refer to the best ones the names occur that these define."""
    users: dict[int, list[int]] = {index: [] for index in best}
    for index, out in enumerate(edges):
        for to, _ in out:
            if to in users and len(users[to]) < _MOST_USERS:
                users[to].append(index)
    names = {name for index in best for name in _defined(paths[index], _content(paths[index]))}
    counts: Counter[bytes] = Counter()
    for index in {user for some in users.values() for user in some}:
        counts.update(names.intersection(_words(_content(paths[index]))))
    return {name.decode(): count for name, count in counts.items()}


def _words(content: bytes) -> list[bytes]:
    return content.translate(_LETTERS).split()


def _family(path: bytes) -> str:
    return _family_of(path.rpartition(b".")[2])


@lru_cache(maxsize=256)
def _family_of(ending: bytes) -> str:
    name = ending.decode("ascii", "replace").lower()
    return str(_FAMILIES.get(name, name))


def _ending(path: bytes) -> str:
    return path.rpartition(b".")[2].decode("ascii", "replace").lower()


def _content(path: bytes) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        content = os.read(fd, _PIECE)
        return content if len(content) < _PIECE else content + os.read(fd, MAX_FILE - _PIECE)
    except OSError:
        return b""
    finally:
        os.close(fd)


def _defined(path: bytes, content: bytes) -> list[bytes]:
    patterns = _DEFINITIONS.get(_ending(path), _OTHERS)
    return list(dict.fromkeys(name for pattern in patterns for name in pattern.findall(content)))


def _module(path: bytes) -> bytes:
    """The name by which others import a file: its own, or its folder's."""
    folder, _, name = path.rpartition(b"/")
    stem = name.partition(b".")[0]
    return folder.rpartition(b"/")[2] if stem in _PACKAGES else stem


def _definers(scanned: Mapping[int, Names], paths: Sequence[bytes]) -> Definers:
    """Which files of a family define a name, for the names that few define, with the weight of a use."""
    found: dict[str, defaultdict[bytes, list[int]]] = {}
    for index, (defined, _) in scanned.items():
        names = defined.split()
        family = _family(paths[index])
        own = found.setdefault(family, defaultdict(list))
        for name in names:
            own[name].append(index)
        module = _module(paths[index]) if family in _IMPORTS else b""
        if module and module not in names:
            own[module].append(index)
    most = min(_MOST_DEFINERS, max(1, len(paths) // 2))
    return {
        family: {
            name: (tuple(files), (1.0 if family in _IMPORTS or not _is_plain(name) else _PLAIN_WEIGHT) / len(files))
            for name, files in own.items()
            if len(files) <= most
        }
        for family, own in found.items()
    }


def _is_plain(name: bytes) -> bool:
    return name.isalpha() and name.islower()


def ranked(edges: Sequence[Edges]) -> list[float]:
    """PageRank: a file is as important as the files that refer to it."""
    count = len(edges)
    if not count:
        return []
    shares = [
        [(to, weight / total) for to, weight in out] for out in edges for total in [sum(w for _, w in out) or 1.0]
    ]
    scores = [1 / count] * count
    for _ in range(_ROUNDS):
        lost = sum(score for score, out in zip(scores, shares, strict=True) if not out)
        fresh = [(1 - _DAMPING + _DAMPING * lost) / count] * count
        for score, out in zip(scores, shares, strict=True):
            passed = _DAMPING * score
            for to, share in out:
                fresh[to] += passed * share
        scores = fresh
    return scores


if __name__ == "__main__":
    sys.exit(main())
