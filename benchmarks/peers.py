"""Another computer over loopback: a call, a picture and a gigabyte, against what the wire alone would cost."""

import asyncio
import json
import os
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.ratio import Ratio
from computer_linker.system import event_loop

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

T = TypeVar("T")
STATS, PICTURES, COPIES = 400, 25, 2
GIGABYTE = 1 << 30
MEMORY_MB = 64


def run() -> list[Ratio]:
    """The picture only where a desktop can be started here."""
    from support.desktop import missing, x11_desktop

    folder = Path(tempfile.mkdtemp(dir=_in_memory()))
    try:
        if missing():
            with _far(folder, {}) as far:
                return as_the_service(_measured(folder, far, with_screen=False))
        with x11_desktop(folder, size="1920x1080x24") as desktop, _far(folder, desktop.env) as far:
            return as_the_service(_measured(folder, far, with_screen=True))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _in_memory() -> str | None:
    """A place in memory with room for the copies, so that a disk's moods are not what is measured; None where there is none."""
    memory = Path("/dev/shm")  # a benchmark's own files
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > 5 * GIGABYTE else None


def as_the_service(main: Coroutine[Any, Any, T]) -> T:
    """Run on the event loop that the service would run on, as both sides do in earnest."""
    sys.setswitchinterval(0.0005)
    return event_loop.run(main)


@dataclass
class Far:
    """Where the far side listens: for peers, for bare WebSocket messages, for a bare TLS stream."""

    peers: int
    echo: int
    sink: int
    code: str
    pid: int
    root: Path


@contextmanager
def _far(folder: Path, env: dict[str, str]) -> Iterator[Far]:
    home, root = folder / "far-home", folder / "far-root"
    home.mkdir(mode=0o700)
    root.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.peer_host", str(home), str(root)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, env={**os.environ, **env}, cwd=Path(__file__).parent.parent,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        told = json.loads(process.stdout.readline())
        peers, echo, sink = told["ports"]
        yield Far(peers, echo, sink, told["code"], told["pid"], root)
    finally:
        process.stdin.close()
        process.wait(20)
        process.stdout.close()


async def _measured(folder: Path, far: Far, *, with_screen: bool) -> list[Ratio]:
    from websockets.asyncio.client import connect

    from computer_linker.transports.peer.join import join
    from computer_linker.transports.peer.routes import PeerRoutes
    from computer_linker.transports.peer.table import PeerTable
    from support.road import Road

    (folder / "near").mkdir()
    async with Road.open(folder / "near") as road:
        routes = road.app.dispatcher.routes = road.app.services.use(PeerRoutes)
        peer, _ = await join(f"127.0.0.1:{far.peers}", far.code, routes.own(None))
        road.app.services.use(PeerTable).add(replace(peer, name="far"))
        async with connect(
            f"wss://127.0.0.1:{far.echo}/", ssl=_trusting(), server_hostname="x", compression=None, max_size=1 << 26
        ) as bare:
            made = [await _stat(road, far, bare)]
            if with_screen:
                made.append(await _picture(routes, bare))
        made += await _copy(road, far)
        await routes.aclose()
        return made


def _trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def _stat(road: Any, far: Far, bare: Any) -> Ratio:
    (far.root / "a.txt").write_text("a")
    (road.root / "a.txt").write_text("a")
    ours: list[float] = []
    limit: list[float] = []
    request = json.dumps({"scope": "app", "op": "file.stat", "target": "a.txt"}).encode()
    for number in range(STATS + 50):
        began = time.perf_counter()
        await bare.send(request)
        await bare.recv()
        assert (await road.app.dispatcher.call_wire(_stat_of("app"), _LOCAL())).ok
        middle = time.perf_counter()
        assert (await road.app.dispatcher.call_wire(_stat_of("far/app"), _LOCAL())).ok
        if number >= 50:
            limit.append(middle - began)
            ours.append(time.perf_counter() - middle)
    note = "limit: a local file.stat and a bare WebSocket echo over TLS"
    return Ratio("remote file.stat", statistics.median(ours), statistics.median(limit), 1.5, note=note)


def _stat_of(scope: str) -> dict[str, Any]:
    return {"scope": scope, "op": "file.stat", "target": "a.txt"}


def _LOCAL() -> Any:  # the principal of the tests, found after their path is known
    from support.road import LOCAL

    return LOCAL


async def _picture(routes: Any, bare: Any) -> Ratio:
    computer = await routes.remote_computer("far")
    ours: list[float] = []
    limit: list[float] = []
    for number in range(PICTURES + 3):
        began = time.perf_counter()
        pixmap = await computer.screen.capture()
        middle = time.perf_counter()
        await bare.send(b"shoot")
        taken = float(await bare.recv())
        sending = time.perf_counter()
        await bare.send(b"send")
        data = await bare.recv()
        assert len(data) == len(pixmap.data) == 1920 * 1080 * 4
        if number >= 3:
            ours.append(middle - began)
            limit.append(taken + time.perf_counter() - sending)
    note = "limit: the same capture there, and its bytes as one WebSocket message over TLS"
    return Ratio("remote capture 1920x1080", statistics.median(ours), statistics.median(limit), 1.2, note=note)


async def _copy(road: Any, far: Far) -> list[Ratio]:
    source = road.root / "gigabyte.bin"
    with source.open("wb") as file:
        for _ in range(GIGABYTE >> 20):
            file.write(os.urandom(1 << 20))
    ours: list[float] = []
    limit: list[float] = []
    memory = 0.0
    for number in range(COPIES):
        before = _peak_reset(os.getpid()), _peak_reset(far.pid)
        began = time.perf_counter()
        await asyncio.to_thread(_plain, far, source)
        middle = time.perf_counter()
        target = f"copy-{number}.bin"
        reply = await road.app.dispatcher.call_wire(
            {"scope": "app", "op": "file.copy", "target": "gigabyte.bin",
             "input": {"destination": target, "destinationScope": "far/app"}}, _LOCAL()
        )  # fmt: skip
        assert reply.ok, reply.envelope
        ours.append(time.perf_counter() - middle)
        limit.append(middle - began)
        memory = max(memory, _peak(os.getpid()) - before[0], _peak(far.pid) - before[1])
        assert (far.root / target).stat().st_size == GIGABYTE
        (far.root / target).unlink()
    source.unlink()
    note = "limit: a plain TLS socket from file to file; files in memory where there is room"
    return [
        Ratio("copy of 1 GB to another computer", statistics.median(ours), statistics.median(limit), 1.3, note=note),
        Ratio("memory of that copy, either side", memory, MEMORY_MB, 1.0, unit="MB", note="growth of the peak"),
    ]


def _plain(far: Far, source: Path) -> None:
    raw = socket.create_connection(("127.0.0.1", far.sink))
    with _trusting().wrap_socket(raw, server_hostname="x") as link, source.open("rb", buffering=0) as file:
        link.sendall(GIGABYTE.to_bytes(8, "big"))
        while piece := file.read(1 << 20):
            link.sendall(piece)
        assert link.recv(1) == b"\x01"


def _peak_reset(pid: int) -> float:
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return _peak(pid)


def _peak(pid: int) -> float:
    """The most memory a process has held, in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no peak is told")
