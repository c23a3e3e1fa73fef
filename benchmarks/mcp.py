"""MCP: starting a client's connection, the cheapest tool call over stdio and HTTP, and the idle service's memory."""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from benchmarks.ratio import Ratio
from benchmarks.wires import HttpCalls, LineCalls
from computer_linker.transports.mcp.early import FILE_NAME
from support import node
from support.lines import Lines, stdio
from support.service import META, TOKEN, Http, Service, end_service, environment, rpc, serving, wait_for, write_config

SCRIPT = Path(sys.executable).parent / "computer-linker"
NODE_SERVERS = Path(__file__).parent / "node"
OURS: dict[str, Any] = {"name": "get_computer_info", "arguments": {"include": ["identity"]}}
"""The cheapest call there is; it is checked and audited like every other."""
ECHO: dict[str, Any] = {"name": "echo", "arguments": {"text": "x" * 200}}
ROUNDS = 5
CALLS = 200
OUTSTANDING = (16, 64)


def run() -> list[Ratio]:
    """Every row of the family."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        service = stack.enter_context(serving(folder, token=TOKEN))
        rows = [*_starts(service, folder), _memory(service)]
        sdk = str(node.install(node.TYPESCRIPT_SDK))
        rows += _stdio_calls(service, sdk)
        return rows + _http_calls(service, sdk)


def _starts(service: Service, folder: Path) -> list[Ratio]:
    warm, cold, called, bare, sdk = [], [], [], [], []
    home = folder / "cold"
    write_config(home, folder / "root")
    _once(home)
    for number in range(9):
        bare.append(_timed(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)))
        warm.append(_timed(lambda: _first_reply(service.home)))
        if number % 3 == 0:
            sdk.append(_timed(lambda: subprocess.run([sys.executable, "-c", "import mcp.server"], check=True)))
            cold.append(_timed(lambda: _first_reply(home)))
            end_service(home)
            called.append(_timed(lambda: _first_reply(home, OURS)))
            end_service(home)
    return [
        Ratio(
            "stdio spawn to initialize and tools/list, service running, vs python -c pass", _mid(warm), _mid(bare), 3
        ),
        Ratio("the same, no service running", _mid(cold), _mid(bare), 3),
        Ratio("the same and a first call, no service running", _mid(called), _mid(bare), 18, note="250 ms of 14"),
        Ratio("the same, vs python -c 'import mcp.server'", _mid(called), _mid(sdk), 1),
    ]


def _once(home: Path) -> None:
    """Let a service prepare its answers, as the first start in a state folder does."""
    with stdio(home):
        wait_for(lambda: (home / FILE_NAME).exists())
    end_service(home)


def _first_reply(home: Path, call: dict[str, Any] | None = None) -> None:
    """Spawn the shim as a client does and wait for the handshake's answer, the tools, and the call's."""
    process = subprocess.Popen(
        [SCRIPT, "stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=environment(home)
    )
    assert process.stdin is not None and process.stdout is not None
    lines = Lines(process.stdout.fileno(), process.stdin.fileno())
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    lines.ask("initialize", params)
    lines.ask("tools/list")
    if call is not None:
        assert "result" in lines.ask("tools/call", call)
    _LEFT_OVER.append(process)


_LEFT_OVER: list[subprocess.Popen[bytes]] = []


def _reap() -> None:
    """End the shims outside the measured time."""
    for process in _LEFT_OVER:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        process.wait(10)
        process.stdout.close()
    _LEFT_OVER.clear()


def _memory(service: Service) -> Ratio:
    """After a session, a few calls in both eras, and a moment of nothing to do."""
    link = Http(service.port, TOKEN)
    link.initialize()
    for number in range(20):
        link.legacy("tools/call", OURS, request_id=number + 1)
        link.modern("tools/call", OURS)
    link.close()
    return Ratio("idle memory of the service", service.memory_mb(), 60, 1, "MB")


def _stdio_calls(service: Service, sdk: str) -> list[Ratio]:
    with stdio(service.home) as ours, _node_stdio(sdk) as theirs:
        calls = (LineCalls(ours.read_fd, ours.write_fd, OURS), LineCalls(theirs.read_fd, theirs.write_fd, ECHO))
        return _compared(calls, "stdio")


def _http_calls(service: Service, sdk: str) -> list[Ratio]:
    rows = []
    with _node_http(sdk, "stream") as streaming, _node_http(sdk, "json") as json_port:
        for era in ("2025-11-25", "2026-07-28"):
            mine = _http_client(service.port, OURS, TOKEN, modern=era == "2026-07-28")
            # The TypeScript SDK streams by default; its plain JSON answers are tried too, and the quicker counts.
            others = [_http_client(port, ECHO, None, modern=False) for port in (streaming, json_port)]
            rows += _compared((mine, *others), f"HTTP {era}")
            for client in (mine, *others):
                client.close()
    return rows


def _http_client(port: int, call: dict[str, Any], token: str | None, *, modern: bool) -> HttpCalls:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    if modern:
        headers |= {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": call["name"]}
        return HttpCalls(port, rpc(1, "tools/call", {**call, "_meta": META}), headers)
    link = Http(port, token)
    link.initialize()
    headers |= link.session_headers()
    link.close()
    return HttpCalls(port, rpc(1, "tools/call", call), headers)


def _compared(clients: Any, way: str) -> list[Ratio]:
    """One call at a time and many outstanding, ours first and the others after it in every round."""
    for client in clients:
        client.one_by_one(CALLS // 3)
    latency: list[list[float]] = [[] for _ in clients]
    rate: dict[int, list[list[float]]] = {many: [[] for _ in clients] for many in OUTSTANDING}
    for _ in range(ROUNDS):
        for at, client in enumerate(clients):
            latency[at].append(statistics.median(client.one_by_one(CALLS)))
            for many in OUTSTANDING:
                took = _timed(lambda client=client, many=many: client.outstanding(2 * CALLS, many))  # type: ignore[misc]
                rate[many][at].append(took / (2 * CALLS))
    ours, *theirs = [_mid(times) * 1e6 for times in latency]
    rows = [Ratio(f"cheapest tools/call over {way}, p50, vs the TypeScript SDK", ours, min(theirs), 1, "us")]
    for many in OUTSTANDING:
        mine, *others = [_mid(times) * 1e6 for times in rate[many]]
        rows.append(Ratio(f"the same with {many} outstanding, time a call", mine, min(others), 1, "us"))
    return rows


@contextmanager
def _node_stdio(sdk: str) -> Iterator[Lines]:
    process = subprocess.Popen(
        [node.node(), NODE_SERVERS / "echo_stdio.mjs", sdk], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        lines = Lines(process.stdout.fileno(), process.stdin.fileno())
        lines.initialize()
        yield lines
    finally:
        process.terminate()
        process.wait(10)
        process.stdin.close()
        process.stdout.close()


@contextmanager
def _node_http(sdk: str, mode: str) -> Iterator[int]:
    process = subprocess.Popen([node.node(), NODE_SERVERS / "echo_http.mjs", sdk, mode], stderr=subprocess.PIPE)
    assert process.stderr is not None
    try:
        line = process.stderr.readline().decode()
        yield int(line.rpartition(":")[2].split("/")[0])
    finally:
        process.terminate()
        process.wait(10)
        process.stderr.close()


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    took = time.perf_counter() - began
    _reap()
    return took


def _mid(times: list[float]) -> float:
    return statistics.median(times)
