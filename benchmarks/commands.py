"""Commands: our operations through the whole road against the bare process they cannot be quicker than."""

import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks import command_servers
from benchmarks.ratio import Ratio, in_a_folder
from support.road import LOCAL, Road, folder_scope

_ROUNDS = 60
_GIGABYTE = 1_000_000_000
_PROCESSES = 200
_CLIENTS = 20
_BETWEEN_S = 0.004


def run() -> list[Ratio]:
    """All figures of the family."""
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=Path(__file__).parents[1]) as folder:
        return [*command_servers.rows(Path(folder)), *in_a_folder(_run)]


async def _run(folder: Path) -> list[Ratio]:
    (folder / "root").mkdir()
    common: dict[str, Any] = {"allowedCommands": ["*"], "maxOutputBytes": 200_000}
    scopes = [
        folder_scope(folder / "root", "bare", sandbox="off", **common),
        folder_scope(folder / "root", "boxed", **common),
    ]
    async with Road.open(folder, scopes) as road:
        ratios = [await _bare(road), await _alone(road)]
        if shutil.which("bwrap"):
            ratios.append(await _boxed(road))
        ratios.append(await _fifty_megabytes(road))
        ratios += await _flood(road)
        ratios.append(await _many(road))
        return ratios


async def _reply(road: Road, op: str, target: str | None, scope: str, **parts: Any) -> Any:
    reply = await road.app.dispatcher.call_wire({"scope": scope, "op": op, "target": target, **parts}, LOCAL)
    if not reply.ok:
        raise RuntimeError(reply.envelope["error"]["message"])
    return reply.envelope["data"]


async def _compared(
    ours: Callable[[], Awaitable[object]], limit: Callable[[], Awaitable[object]], rounds: int
) -> tuple[float, float]:
    """Medians of both, taken in turn with a rest between: both start processes, which leave work behind."""
    mine: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds + 3):
        for act, times in ((limit, theirs), (ours, mine)):
            started = time.perf_counter()
            await act()
            times.append(time.perf_counter() - started)
            # What one leaves to be done (a child forked ahead, a look for orphans) is not in the other's time.
            await asyncio.sleep(_BETWEEN_S)
    return statistics.median(mine[3:]), statistics.median(theirs[3:])


async def _plain(*argv: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    await process.communicate()


async def _bare(road: Road) -> Ratio:
    ours, limit = await _compared(
        lambda: _reply(road, "command.run", ".", "bare", input={"command": ["/usr/bin/true"]}),
        lambda: _plain("/usr/bin/true"),
        _ROUNDS,
    )
    return Ratio("command.run of true, no sandbox, against create_subprocess_exec", ours, limit, 1.5)


async def _alone(road: Road) -> Ratio:
    from computer_linker.providers.processes.runner import Limits, Runner
    from computer_linker.providers.sandbox.boundary import SpawnPlan

    runner = road.app.services.use(Runner)
    ours, limit = await _compared(
        lambda: runner.run(SpawnPlan(argv=("/usr/bin/true",)), {}, Limits(10, 1000)),
        lambda: _plain("/usr/bin/true"),
        _ROUNDS,
    )
    return Ratio("the same without policy and history", ours, limit, 1.5)


async def _boxed(road: Road) -> Ratio:
    line = command_servers.inside(Path(road.app.config.scopes[1].roots[0]), "/usr/bin/true")
    ours, limit = await _compared(
        lambda: _reply(road, "command.run", ".", "boxed", input={"command": ["/usr/bin/true"]}),
        lambda: _plain(*line),
        _ROUNDS,
    )
    return Ratio("command.run of true in bubblewrap, against a plain bwrap line", ours, limit, 1.3)


async def _printed(road: Road, size: int, rounds: int) -> tuple[float, float]:
    """A command that prints that many bytes, and the same through a plain pipe."""
    argv = ["head", "-c", str(size), "/dev/zero"]

    async def limit() -> None:
        process = await asyncio.create_subprocess_shell(f"head -c {size} /dev/zero | cat > /dev/null")
        await process.wait()

    return await _compared(lambda: _reply(road, "command.run", ".", "bare", input={"command": argv}), limit, rounds)


async def _fifty_megabytes(road: Road) -> Ratio:
    ours, limit = await _printed(road, 50_000_000, 15)
    return Ratio("a command that prints 50 MB, against cat of the pipe", ours, limit, 1.2)


async def _flood(road: Road) -> list[Ratio]:
    await _reply(road, "command.run", ".", "bare", input={"command": ["head", "-c", "10000000", "/dev/zero"]})
    before = _resident()
    ours, bare = await _printed(road, _GIGABYTE, 3)
    grown = max(_resident() - before, 1)
    return [
        Ratio("a command that prints 1 GB, against cat of the pipe", ours, bare, 2),
        Ratio("memory grown by 1 GB of output, against 32 MB", grown / 1e6, 32, 1, "MB"),
    ]


async def _many(road: Road) -> Ratio:
    script = "i=0; while [ $i -lt 40 ]; do echo line $i; i=$((i+1)); sleep 0.05; done; sleep 60"
    started = await asyncio.gather(
        *(
            _reply(road, "command.start", ".", "bare", input={"command": ["sh", "-c", script]})
            for _ in range(_PROCESSES)
        )
    )
    ids = [each.process_id for each in started]
    times: list[float] = []
    texts = dict.fromkeys(ids, "")

    async def client(mine: list[str]) -> None:
        cursors = dict.fromkeys(mine, 0)
        while not all(texts[each].endswith("line 39\n") for each in mine):
            for each in mine:
                begun = time.perf_counter()
                read = await _reply(road, "command.read", each, "bare", options={"cursor": cursors[each]})
                times.append(time.perf_counter() - begun)
                cursors[each] = read.cursor
                texts[each] += "".join(chunk["text"] for chunk in read.chunks)
            await asyncio.sleep(0.02)

    async with asyncio.timeout(40):
        await asyncio.gather(*(client(ids[number::_CLIENTS]) for number in range(_CLIENTS)))
    lost = sum(text != "".join(f"line {i}\n" for i in range(40)) for text in texts.values())
    if lost:
        raise RuntimeError(f"{lost} processes lost output")
    await asyncio.gather(*(_reply(road, "command.stop", each, "bare", options={"signal": "kill"}) for each in ids))
    slowest = statistics.quantiles(times, n=20)[-1]
    return Ratio(
        "a read among 200 processes and 20 clients at p95, against 100 ms", slowest, 0.1, 1, note=f"{len(times)} reads"
    )


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
