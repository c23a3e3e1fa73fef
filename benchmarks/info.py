"""Introspection: processor time of a service for one get_computer_info call, warm and in its first seconds."""

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from benchmarks.ratio import Ratio
from computer_linker.transports.mcp.schemas import INFO_PARTS
from support.lines import Lines, stream
from support.road import folder_scope
from support.service import Service, serving

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
    """Calls one after another from the moment the service listens: the first, and the median and dearest of its first seconds."""
    rows = []
    for kind in ("the default", "all nine parts"):
        taken: list[float] = []
        with tempfile.TemporaryDirectory() as place:
            for _ in range(2):
                # The second service finds what the first one prepared.
                with _service(Path(place)) as service, stream(service.home) as lines:
                    taken = []
                    until = time.monotonic() + 3
                    while time.monotonic() < until:
                        taken.append(_cost(service, lines, _KINDS[kind]))
        note = f"first {taken[0] * 1e3:.1f}, dearest {max(taken) * 1e3:.1f} ms with what the service does of itself meanwhile"
        job = f"{kind}, median of the first 3 s of a service"
        rows.append(Ratio(job, statistics.median(taken) * 1e3, _BOUND_S * 1e3, 1, "ms of processor", note))
    return rows


def _cost(service: Service, lines: Lines, arguments: dict[str, Any]) -> float:
    began = _processor_s(service.process.pid)
    lines.tool("get_computer_info", **arguments)
    return _processor_s(service.process.pid) - began


def _processor_s(pid: int) -> float:
    """What all threads of a process have used; the clock's number is made as clock_getcpuclockid(3) makes it."""
    return time.clock_gettime((~pid << 3) | 2)
