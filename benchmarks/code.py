"""Code: operations of language servers against the server's own time, and the map of 10,000 files."""

import asyncio
import json
import keyword
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.ratio import Ratio, in_a_folder
from computer_linker.providers.language.capabilities import CLIENT
from computer_linker.providers.language.pool import LanguageServers
from computer_linker.providers.language.server import Server
from computer_linker.providers.language.text import Lines, Position
from computer_linker.providers.language.uris import uri_of
from computer_linker.providers.sandbox.sandbox import Sandbox
from support import node
from support.agents import road_with
from support.language import path_with
from support.road import Road, folder_scope

_SOURCE = Path(__file__).parents[1] / "src"
_FILES = 10_000
_ROUNDS = 15
_FILE, _LINE, _NAME = "computer_linker/providers/held.py", "def guarded(", "guarded"
_COLD_ROUNDS = 3


def run() -> list[Ratio]:
    """All figures of the family."""
    return in_a_folder(_run)


async def _run(folder: Path) -> list[Ratio]:
    root = folder / "code"
    shutil.copytree(_SOURCE, root, ignore=shutil.ignore_patterns("__pycache__"))
    return [*await _servers(folder, root), *await _maps(folder)]


async def _servers(folder: Path, root: Path) -> list[Ratio]:
    environ = path_with(node.pyright())
    line = next(number for number, text in enumerate((root / _FILE).read_text().splitlines()) if text.startswith(_LINE))
    at = Position(line, _LINE.index(_NAME))
    ours, raw = [], []
    for _ in range(_COLD_ROUNDS):
        raw.append(await asyncio.to_thread(_raw_first, environ, root, at))
        async with road_with(folder, environ, [folder_scope(root)]) as road:
            # A service probes its boundary when it starts.
            await road.app.services.use(Sandbox).probe()
            start = time.perf_counter()
            await _ask(road, "code.definition", at)
            ours.append(time.perf_counter() - start)
    # The last figure is that of a repository whose files the system has cached, for both.
    first = Ratio(
        "first code.definition on this repository, against pyright's own and 0.3 s", min(ours), min(raw) + 0.3, 1.0
    )
    async with road_with(folder, environ, [folder_scope(root)]) as road:
        await _ask(road, "code.references", at)
        (server,) = road.app.services.use(LanguageServers).running()
        definition = await _warm(road, server, "code.definition", "textDocument/definition", at)
        references = await _warm(road, server, "code.references", "textDocument/references", at)
    return [first, definition, references]


async def _ask(road: Road, op: str, at: Position) -> dict[str, Any]:
    place = {"line": at.line + 1, "column": at.character + 1}
    return await road.data(op, _FILE, input=place, options={"maxResults": 1000} if op == "code.references" else None)


async def _warm(road: Road, server: Server, op: str, method: str, at: Position) -> Ratio:
    params: dict[str, Any] = {"textDocument": {"uri": uri_of(f"{server.root}/{_FILE}")}, "position": at.to_wire()}
    params["context"] = {"includeDeclaration": True}
    mine, theirs = [], []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        await server.wire.result(server.wire.ask(method, params), 60)
        middle = time.perf_counter()
        await _ask(road, op, at)
        theirs.append(middle - start)
        mine.append(time.perf_counter() - middle)
    return Ratio(f"warm {op}, against pyright's own", statistics.median(mine), statistics.median(theirs), 1.3)


def _raw_first(environ: dict[str, str], root: Path, at: Position) -> float:
    """The time from pyright's start to its first answer, without a service or a sandbox."""
    program = f"{node.pyright()}/pyright-langserver"
    start = time.perf_counter()
    child = subprocess.Popen(
        [program, "--stdio"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=root,
        env=environ,
    )
    assert child.stdin is not None and child.stdout is not None
    uri, file = uri_of(str(root)), uri_of(f"{root}/{_FILE}")
    folders = [{"uri": uri, "name": "root"}]
    _send(
        child,
        1,
        "initialize",
        {"processId": os.getpid(), "rootUri": uri, "workspaceFolders": folders, "capabilities": CLIENT},
    )
    _answer(child, 1)
    _send(child, None, "initialized", {})
    text = (root / _FILE).read_text()
    item = {"uri": file, "languageId": "python", "version": 1, "text": text}
    _send(child, None, "textDocument/didOpen", {"textDocument": item})
    _send(child, 2, "textDocument/definition", {"textDocument": {"uri": file}, "position": at.to_wire()})
    _answer(child, 2)
    took = time.perf_counter() - start
    child.kill()
    child.wait()
    assert Lines(text).line(at.line).startswith(_LINE)
    return took


def _send(child: "subprocess.Popen[bytes]", number: int | None, method: str, params: Any) -> None:
    message = {"jsonrpc": "2.0", "method": method, "params": params, **({} if number is None else {"id": number})}
    body = json.dumps(message).encode()
    assert child.stdin is not None
    child.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    child.stdin.flush()


def _answer(child: "subprocess.Popen[bytes]", number: int) -> Any:
    """The answer to a request; what the server asks meanwhile is answered with nothing."""
    assert child.stdin is not None and child.stdout is not None
    while True:
        size = 0
        while line := child.stdout.readline().strip():
            size = int(line.partition(b":")[2]) if line.lower().startswith(b"content-length") else size
        message = json.loads(child.stdout.read(size))
        if "method" in message and "id" in message:
            items = (message.get("params") or {}).get("items")
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": [None] * len(items) if items else None}
            body = json.dumps(reply).encode()
            child.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            child.stdin.flush()
        elif message.get("id") == number and "method" not in message:
            return message.get("result")


async def _maps(folder: Path) -> list[Ratio]:
    root = folder / "many"
    size = await asyncio.to_thread(_many, root)
    async with Road.open(folder, [folder_scope(root, "many")]) as road:
        start = time.perf_counter()
        found = await road.data("code.map", ".", scope="many")
        cold = time.perf_counter() - start
        warm = []
        for _ in range(9):
            start = time.perf_counter()
            await road.data("code.map", ".", scope="many")
            warm.append(time.perf_counter() - start)
    assert found["files"] == _FILES, found["files"]
    of = f"code.map of {_FILES} files ({size / 1e6:.0f} MB)"
    return [
        Ratio(f"{of}, cold, against 2 s", cold, 2.0, 1.0),
        Ratio(f"{of}, warm, against 0.1 s", statistics.median(warm), 0.1, 1.0),
    ]


def _many(root: Path) -> int:
    """Copies of this repository's sources, in each of which every name is another."""
    sources = sorted(path for path in _SOURCE.rglob("*.py"))
    kept = {word.encode() for word in keyword.kwlist}
    size = 0
    for number in range(_FILES):
        source, copy = sources[number % len(sources)], number // len(sources)

        def renamed(found: "re.Match[bytes]", copy: int = copy) -> bytes:
            return found.group() if found.group() in kept else found.group() + b"%d" % copy

        content = re.sub(rb"[A-Za-z_]\w{3,}", renamed, source.read_bytes()) if copy else source.read_bytes()
        place = root / f"copy{copy}" / source.relative_to(_SOURCE)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        size += len(content)
    return size
