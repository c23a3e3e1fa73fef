"""Introspection: processor time of a service for one get_computer_info call, warm and in its first seconds."""

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from benchmarks.ratio import Ratio
from computer_linker.model.info import INFO_PARTS
from computer_linker.service.catalogue import FILE_NAME
from computer_linker.service.expected_boundary import FILE_NAME as BOUNDARY
from support.lines import Lines, stream
from support.road import folder_scope
from support.service import Service, serving, wait_for

_BOUND_S = 0.005
"""What one call may take of the processor."""
_SCOPES = 5
_ROUNDS = 15
_KINDS: dict[str, dict[str, Any]] = {
    "the default": {},
    "all nine parts": {"include": list(INFO_PARTS)},
    "every operation": {"include": ["operations"]},
    "named operations": {"operations": ["file.patch", "git.*"]},
    **{f"{part} alone": {"include": [part]} for part in INFO_PARTS if part != "operations"},
}
_STARTS = 3
_SETTLED_S = 2.0
_CLIENTS = ("some program", "codex")


def run() -> list[Ratio]:
    """A row for each kind of call, for a program and for a model's client; then the dearest of a fresh service."""
    with tempfile.TemporaryDirectory() as place, _service(Path(place) / "warm") as service:
        costs = {client: _warm(service, client) for client in _CLIENTS}
    rows = [
        Ratio(f"{kind}, to {client}, {_SCOPES} scopes", cost * 1e3, _BOUND_S * 1e3, 1, "ms of processor")
        for client in _CLIENTS
        for kind, cost in costs[client].items()
    ]
    return [*rows, *_fresh()]


def _service(place: Path) -> Any:
    """A process of its own that finds compiled modules, as an installed program does."""
    compiled = {"PYTHONPYCACHEPREFIX": str(place / "compiled"), "PYTHONDONTWRITEBYTECODE": ""}
    scopes = [folder_scope(place / f"root{number}", f"app{number}") for number in range(_SCOPES)]
    for number in range(_SCOPES):
        (place / f"root{number}").mkdir(parents=True, exist_ok=True)
    return serving(place, scopes=scopes, env=compiled)


def _warm(service: Service, client: str) -> dict[str, float]:
    """The median processor time a call, each kind in turn."""
    costs: dict[str, list[float]] = {kind: [] for kind in _KINDS}
    with stream(service.home, handshake=False) as lines:
        lines.initialize(name=client)
        for arguments in _KINDS.values():
            lines.tool("get_computer_info", **arguments)
        for _ in range(_ROUNDS):
            for kind, arguments in _KINDS.items():
                costs[kind].append(_cost(service, lines, arguments))
    return {kind: statistics.median(taken) for kind, taken in costs.items()}


def _fresh() -> list[Ratio]:
    """The first call of a service, of one that finds what an earlier one of the same source kept: later, at once; then others.

    The first call at once does what the service would have done right after the client connected.
    """
    rows = []
    with tempfile.TemporaryDirectory() as place:
        unprepared = [_unprepared(Path(place)) * 1e3 for _ in range(2)][1]
        for kind in ("the default", "all nine parts"):
            later = [_first(Path(place), _KINDS[kind], _SETTLED_S)[0] * 1e3 for _ in range(_STARTS)]
            runs = [_first(Path(place), _KINDS[kind], 0) for _ in range(_STARTS)]
            at_once = [run[0] * 1e3 for run in runs]
            note = f"at once after connecting {statistics.median(at_once):.1f} ms"
            note += f"; with nothing kept {unprepared:.0f} ms" if kind == "the default" else ""
            job = f"{kind}, first call of a service, {_SCOPES} scopes"
            rows.append(Ratio(job, statistics.median(later), _BOUND_S * 1e3, 1, "ms of processor", note))
            taken = statistics.median(cost for run in runs for cost in run[1:]) * 1e3
            job = f"{kind}, first 3 s of a service, {_SCOPES} scopes"
            rows.append(Ratio(job, taken, _BOUND_S * 1e3, 1, "ms of processor"))
    return rows


def _unprepared(place: Path) -> float:
    """The cost of the first call where no service has kept anything, at once; what it builds is kept then."""
    for kept in (FILE_NAME, BOUNDARY):
        (place / "home" / kept).unlink(missing_ok=True)
    with _service(place) as service, stream(service.home) as lines:
        cost = _cost(service, lines, {})
        wait_for(lambda: (service.home / FILE_NAME).exists() and (service.home / BOUNDARY).exists())
    return cost


def _first(place: Path, arguments: dict[str, Any], after_s: float) -> list[float]:
    """The costs of the calls of a new service, the first one so long after its client connected."""
    with _service(place) as service, stream(service.home) as lines:
        time.sleep(after_s)
        return _costs_for(0 if after_s else 3, service, lines, arguments)


def _costs_for(seconds: float, service: Service, lines: Lines, arguments: dict[str, Any]) -> list[float]:
    until = time.monotonic() + seconds
    taken: list[float] = []
    while time.monotonic() < until or len(taken) < 2:
        taken.append(_cost(service, lines, arguments))
    return taken


def _cost(service: Service, lines: Lines, arguments: dict[str, Any]) -> float:
    began = processor_s(service.process.pid)
    lines.tool("get_computer_info", **arguments)
    return processor_s(service.process.pid) - began


def processor_s(pid: int) -> float:
    """What all threads of a process have used; the clock's number is made as clock_getcpuclockid(3) makes it."""
    return time.clock_gettime((~pid << 3) | 2)
