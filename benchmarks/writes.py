"""Small writes and many outstanding calls over stdio, against server-filesystem in turn: time and processor time.

Its write is a temporary file and a rename; ours is synced, recorded and can be taken back. Measured on the disk and in memory:
the difference is what the syncs cost.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from benchmarks.info import processor_s
from benchmarks.ratio import Ratio
from benchmarks.tokens import FILESYSTEM
from benchmarks.wires import LineCalls
from support import node
from support.lines import Lines, stream
from support.service import Service, serving

_PLACES = {"disk": Path(__file__).resolve().parents[1], "memory": Path("/dev/shm")}
_CONTENT = "x" * 1024
_WRITES, _ROUNDS = 50, 10
_OUTSTANDING, _CALLS = 64, 2000
_CHEAP_OURS = {"name": "get_computer_info", "arguments": {"include": ["identity"]}}
_CHEAP_THEIRS: dict[str, object] = {"name": "list_allowed_directories", "arguments": {}}


def run() -> list[Ratio]:
    """Rows for the disk, for memory, and for outstanding calls."""
    rows = []
    for name, place in _PLACES.items():
        with tempfile.TemporaryDirectory(prefix=".bench-", dir=place) as folder:
            started = {"LC_ALL": "C.UTF-8"}
            with (
                serving(Path(folder), env=started) as service,
                stream(service.home) as ours,
                _peer(service.root) as peer,
            ):
                rows += _writes(name, service, ours, peer)
                if name == "disk":
                    rows += _outstanding(service, ours, peer)
    return rows


@contextmanager
def _peer(root: Path) -> Iterator[tuple[int, Lines]]:
    program = node.install(FILESYSTEM) / "node_modules" / ".bin" / "mcp-server-filesystem"
    process = subprocess.Popen(
        [program, root], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        lines = Lines(process.stdout.fileno(), process.stdin.fileno(), process)
        lines.initialize()
        yield process.pid, lines
    finally:
        process.stdin.close()
        process.terminate()
        process.wait(10)
        process.stdout.close()


def _writes(place: str, service: Service, ours: Lines, peer: tuple[int, Lines]) -> list[Ratio]:
    number = count()

    def write_ours() -> None:
        for _ in range(_WRITES):
            answer = ours.operation("file.write", f"ours-{next(number)}", input={"content": _CONTENT})
            assert answer["ok"], answer

    def write_theirs() -> None:
        for _ in range(_WRITES):
            peer[1].tool("write_file", path=str(service.root / f"theirs-{next(number)}"), content=_CONTENT)

    job = f"file.write of 1 KB, {_WRITES * _ROUNDS} times, {place}, vs server-filesystem"
    pids = (service.process.pid, peer[0])
    return _rows(job, (write_ours, write_theirs), pids, _WRITES, "neither synced nor undoable nor recorded there")


def _outstanding(service: Service, ours: Lines, peer: tuple[int, Lines]) -> list[Ratio]:
    mine = LineCalls(ours.read_fd, ours.write_fd, _CHEAP_OURS)
    theirs = LineCalls(peer[1].read_fd, peer[1].write_fd, _CHEAP_THEIRS)
    job = f"cheap calls, {_OUTSTANDING} outstanding on one pipe, vs server-filesystem"
    work = (lambda: mine.outstanding(_CALLS, _OUTSTANDING), lambda: theirs.outstanding(_CALLS, _OUTSTANDING))
    return _rows(job, work, (service.process.pid, peer[0]), _CALLS, "")


def _rows(
    job: str, work: tuple[Callable[[], object], Callable[[], object]], pids: tuple[int, int], each: int, note: str
) -> list[Ratio]:
    """Medians of the time and of the processor time for one, the two in turn."""
    wall: tuple[list[float], list[float]] = ([], [])
    processor: tuple[list[float], list[float]] = ([], [])
    for step in range(_ROUNDS + 1):
        for at in (0, 1):
            began, used = time.perf_counter(), processor_s(pids[at])
            work[at]()
            if step:
                wall[at].append(time.perf_counter() - began)
                processor[at].append(processor_s(pids[at]) - used)
    rows = []
    for what, taken in (("time", wall), ("processor time", processor)):
        mine, theirs = (statistics.median(times) / each * 1e6 for times in taken)
        rows.append(Ratio(f"{job}, {what}", mine, theirs, 1, "us", note))
    return rows
