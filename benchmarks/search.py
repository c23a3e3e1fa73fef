"""Search: our operations through the whole road against ripgrep itself on the same trees."""

import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from pydantic_core import to_json

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.ratio import Ratio, compared, compared_processor, in_a_folder
from computer_linker.providers.search.ripgrep import program
from support.road import LOCAL, Road, folder_scope

_GIGABYTE_FILES = 8000
_FILE_SIZE = 131_072
_SMALL_FILES = 100_000
_SOURCE_FILES = 5000


def run() -> list[Ratio]:
    """All figures of the family."""
    return in_a_folder(_run)


async def _run(folder: Path) -> list[Ratio]:
    scopes = [folder_scope(folder / name, name) for name in ("text", "many", "code")]
    for name in ("text", "many", "code"):
        (folder / name).mkdir()
    async with Road.open(folder, scopes) as road:
        _text_tree(folder / "text")
        found = [await measure(road, folder / "text") for measure in (_rare, _common, _common_page)]
        found.append(await _first_page(road, "text", "file.search", {"query": "quorum"}, 1000, ("quorum",)))
        shutil.rmtree(folder / "text")
        _many_files(folder / "many")
        found += [await _find(road, folder / "many"), await _find_first(road, folder / "many")]
        found.append(await _first_page(road, "many", "file.find", {"pattern": "*.txt"}, 200, ("--files",)))
        _source_tree(folder / "code")
        found.append(await _symbols(road, folder / "code"))
        return found


async def _rare(road: Road, root: Path) -> Ratio:
    ours, limit = await compared(
        5,
        lambda: _reply(road, "text", "file.search", {"query": "needle_in_the_hay"}, 3),
        lambda: _rg(root, "--json", "--no-config", "needle_in_the_hay", "./"),
    )
    return Ratio("file.search, rare literal in 1 GB, against rg --json", ours, limit, 1.15)


async def _common(road: Road, root: Path) -> Ratio:
    ours, limit = await compared(
        5,
        lambda: _reply(road, "text", "file.search", {"query": "quorum"}, 100),
        lambda: _rg(root, "--no-config", "quorum", "./"),
    )
    return Ratio("file.search, first 100 of a common word, against rg on all of it", ours, limit, 0.2)


async def _common_page(road: Road, root: Path) -> Ratio:
    ours, limit = await compared(
        5,
        lambda: _reply(road, "text", "file.search", {"query": "quorum"}, 1000),
        lambda: _rg(root, "--no-config", "quorum", "./"),
    )
    return Ratio("file.search, first 1,000 of a common word, against rg on all of it", ours, limit, 1.0)


async def _first_page(
    road: Road, scope: str, op: str, given: dict[str, Any], most: int, whole: tuple[str, ...]
) -> Ratio:
    """A first page, which never costs more than ripgrep on all of it: it is stopped when the page is full."""
    root = Path(road.app.config.scope(scope).roots[0])  # type: ignore[union-attr]
    ours, limit = await compared_processor(
        5, lambda: _reply(road, scope, op, given, most), lambda: _rg(root, "--no-config", *whole, "./")
    )
    job = f"{op}, first {most} of many, processor time with ripgrep's, against rg on all of it"
    return Ratio(job, ours, limit, 1.0)


async def _find(road: Road, root: Path) -> Ratio:
    ours, limit = await compared(
        7,
        lambda: _reply(road, "many", "file.find", {"pattern": "*77.txt"}, 1000),
        lambda: _rg(root, "--no-config", "--files", "./"),
    )
    return Ratio("file.find in 100,000 files, against rg --files", ours, limit, 1.3)


async def _find_first(road: Road, root: Path) -> Ratio:
    ours, limit = await compared(
        7,
        lambda: _reply(road, "many", "file.find", {"pattern": "*.txt"}, 200),
        lambda: _rg(root, "--no-config", "--files", "./"),
    )
    return Ratio("file.find, first 200 of 100,000 files, against rg --files of all", ours, limit, 1.0)


async def _symbols(road: Road, root: Path) -> Ratio:
    first = time.perf_counter()
    await _reply(road, "code", "code.search_symbols", {"query": "handler_77"}, 50, least=1)
    first = time.perf_counter() - first
    ours, limit = await compared(
        15,
        lambda: _reply(road, "code", "code.search_symbols", {"query": "handler_77"}, 50, least=1),
        lambda: _rg(root, "--no-config", "handler_77", "./"),
    )
    note = f"first query {first:.2f} s"
    return Ratio("code.search_symbols in 5,000 files, again, against rg for the name", ours, limit, 2.0, note=note)


async def _reply(road: Road, scope: str, op: str, given: dict[str, Any], most: int, least: int = 0) -> bytes:
    """One call as a surface makes it: the envelope as JSON bytes."""
    call = {"scope": scope, "op": op, "target": ".", "input": given, "options": {"maxResults": most}}
    reply = await road.app.dispatcher.call_wire(call, LOCAL)
    if not reply.ok:
        raise RuntimeError(reply.envelope["error"]["message"])
    text: bytes = to_json(reply.envelope, by_alias=True)
    if least and b'"symbols":[]' in text:
        raise RuntimeError("no symbol was found")
    return text


def _rg(root: Path, *args: str) -> bytes:
    rg = program()
    assert rg is not None
    return subprocess.run([rg, *args], cwd=root, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL).stdout


def _text_tree(root: Path) -> None:
    """One gigabyte in 8,000 files; three lines in it hold the needle."""
    dice = random.Random(1)
    words = [
        "lorem",
        "ipsum",
        "dolor",
        "sit",
        "amet",
        "alpha",
        "beta",
        "return",
        "value",
        "import",
        "self",
        "0x1f",
        "//",
    ]
    blocks = []
    for _ in range(16):
        lines: list[str] = []
        size = 0
        while size < _FILE_SIZE:
            line = " ".join(dice.choices(words, k=10)) + (" quorum" if dice.random() < 0.01 else "")
            lines.append(line)
            size += len(line) + 1
        blocks.append("\n".join(lines).encode()[:_FILE_SIZE])
    for number in range(_GIGABYTE_FILES):
        folder = root / f"d{number // 100:03d}"
        if number % 100 == 0:
            folder.mkdir()
        extra = b"\nneedle_in_the_hay\n" if number in (5, 3999, 7990) else b"\n"
        (folder / f"f{number}.txt").write_bytes(blocks[number % 16] + extra)


def _many_files(root: Path) -> None:
    for number in range(_SMALL_FILES):
        folder = root / f"d{number // 200:03d}"
        if number % 200 == 0:
            folder.mkdir()
        (folder / f"f{number}.txt").touch()


def _source_tree(root: Path) -> None:
    """Sources of a usual size, each with functions of its own; ten of them mention the name that is looked for."""
    for number in range(_SOURCE_FILES):
        folder = root / f"p{number // 50:03d}"
        if number % 50 == 0:
            folder.mkdir()
        parts = [f"class Service{number}:\n    limit = {number}\n"]
        for inner in range(20):
            parts.append(
                f"    def method_{inner}(self, value: int) -> int:\n        return value + {inner} * self.limit\n"
            )
        name = f"handler_{number}" if number % 500 else "use_handler_77"
        parts.append(f"def {name}(request: dict) -> str:\n    return str(request)\n")
        (folder / f"m{number}.py").write_text("\n".join(parts))
