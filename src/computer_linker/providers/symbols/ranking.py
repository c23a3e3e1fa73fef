"""The ranking child process: which files of a tree the others refer to, by the names they define and use.

stdin has paths below the working folder, each ended by NUL; stdout gets one line of JSON. Definitions are found by the shape of
their line and uses by name: precise enough to rank, and ten times as fast as parsing. What is shown of a file is parsed.
"""

import json
import os
import pickle
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

MAX_FILE = 512 << 10
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
_PLAIN = re.compile(rb"[a-z]+")
_PLAIN_WEIGHT = 0.1
"""A name that is a word of English too may only be in a comment."""
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
Definers = dict[str, dict[bytes, tuple[tuple[int, ...], float]]]
"""By family and name: the files that define it, and what a use of it weighs."""


def main() -> int:
    """Rank the files of stdin."""
    paths = [path for path in sys.stdin.buffer.read().split(b"\0") if path]
    workers = [_Worker(paths, at, count) for count in [_workers(len(paths))] for at in range(count)]
    definers = _definers([worker.receive() for worker in workers], paths)
    for worker in workers:
        worker.send(definers)
    edges: list[Edges] = [[] for _ in paths]
    uses: Counter[bytes] = Counter()
    for worker in workers:
        found, used = worker.receive()
        for index, out in found:
            edges[index] = out
        uses.update(used)
    for worker in workers:
        worker.wait()
    scores = ranked(edges)
    order = sorted(range(len(paths)), key=lambda index: (-scores[index], paths[index]))
    best = [os.fsdecode(paths[index]) for index in order]
    # Each file that defines a name has it once more.
    names = {name.decode(): count - 1 for name, count in uses.most_common(20_000) if count > 1}
    sys.stdout.write(json.dumps({"files": best, "uses": names}))
    return 0


def _workers(files: int) -> int:
    return max(1, min(8, os.cpu_count() or 1, files // 100))


class _Worker:
    """A forked process that scans every `count`th file from `at`, sends its definitions, and later its references."""

    def __init__(self, paths: Sequence[bytes], at: int, count: int) -> None:
        down, up = os.pipe(), os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(down[1])
            os.close(up[0])
            status = 1
            try:
                with open(down[0], "rb") as orders, open(up[1], "wb") as answers:
                    _scan(paths, range(at, len(paths), count), orders, answers)
                status = 0
            finally:
                os._exit(status)
        os.close(down[0])
        os.close(up[1])
        self._orders, self._answers = open(down[1], "wb"), open(up[0], "rb")  # noqa: SIM115  # for the worker's life

    def receive(self) -> Any:
        return pickle.load(self._answers)  # noqa: S301  # of our own fork

    def wait(self) -> None:
        os.waitpid(self._pid, 0)

    def send(self, value: object) -> None:
        pickle.dump(value, self._orders, protocol=5)
        self._orders.close()


def _scan(paths: Sequence[bytes], share: range, orders: BinaryIO, answers: BinaryIO) -> None:
    """Files are read twice rather than kept: the names of a large tree would fill the memory."""
    _tell(answers, {index: _defined(paths[index], _content(paths[index])) for index in share})
    definers: Definers = pickle.load(orders)  # noqa: S301  # of our own parent
    found: list[tuple[int, Edges]] = []
    uses: Counter[bytes] = Counter()
    for index in share:
        known = definers.get(_family(paths[index]), {})
        weights: defaultdict[int, float] = defaultdict(float)
        used = known.keys() & set(_content(paths[index]).translate(_LETTERS).split())
        uses.update(used)
        for name in used:
            files, weight = known[name]
            if index not in files:
                for other in files:
                    weights[other] += weight
        strongest = sorted(weights.items(), key=lambda edge: (-edge[1], edge[0]))[:_MOST_EDGES]
        found.append((index, strongest))
    _tell(answers, (found, uses))


def _tell(answers: BinaryIO, value: object) -> None:
    pickle.dump(value, answers, protocol=5)
    answers.flush()


def _family(path: bytes) -> str:
    ending = _ending(path)
    return str(_FAMILIES.get(ending, ending))


def _ending(path: bytes) -> str:
    return path.rpartition(b".")[2].decode("ascii", "replace").lower()


def _content(path: bytes) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, MAX_FILE)
    except OSError:
        return b""
    finally:
        os.close(fd)


def _defined(path: bytes, content: bytes) -> list[bytes]:
    patterns = _DEFINITIONS.get(_ending(path), _OTHERS)
    return list(dict.fromkeys(name for pattern in patterns for name in pattern.findall(content)))


def _definers(shares: Sequence[Mapping[int, Sequence[bytes]]], paths: Sequence[bytes]) -> Definers:
    """Which files of a family define a name, for the names that few define, with the weight of a use."""
    found: dict[str, defaultdict[bytes, list[int]]] = {}
    for share in shares:
        for index, names in share.items():
            own = found.setdefault(_family(paths[index]), defaultdict(list))
            for name in names:
                own[name].append(index)
    most = min(_MOST_DEFINERS, max(1, len(paths) // 2))
    return {
        family: {
            name: (tuple(files), (_PLAIN_WEIGHT if _PLAIN.fullmatch(name) else 1.0) / len(files))
            for name, files in own.items()
            if len(files) <= most
        }
        for family, own in found.items()
    }


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
