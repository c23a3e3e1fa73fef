"""Commands over stdio, as a client sees them: our sandboxed ones, another server's without a sandbox, bubblewrap, a bare process.

All are measured in turn in one run, so that a busy machine is as busy for each.
"""

import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.ratio import Ratio
from support import node
from support.lines import Lines, stdio
from support.road import folder_scope
from support.service import end_service, write_config

OTHER = "mcp-server-commands@0.5.0"
_ROUNDS = 40
_BETWEEN_S = 0.03
"""What a command leaves to be done, such as the next one's root, is done before the next of another kind starts."""
_CALLED = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


def rows(folder: Path) -> list[Ratio]:
    """The rows; empty where bubblewrap is missing. The other server's row is left out where it cannot be installed."""
    if shutil.which("bwrap") is None:
        return []
    home, root = folder / "served", folder / "served-root"
    write_config(home, root, scopes=[folder_scope(root, allowedCommands=["*"], sandbox="required")])
    try:
        with ExitStack() as stack:
            ours = stack.enter_context(stdio(home))
            ours.ask("initialize", _CALLED)
            return [*_true(ours, stack, root), *_start_and_stop(ours, root)]
    finally:
        end_service(home)


def _true(ours: Lines, stack: ExitStack, root: Path) -> list[Ratio]:
    acts: dict[str, Callable[[], object]] = {
        "ours": lambda: _operation(ours, "command.run", ".", {"command": ["/usr/bin/true"]}),
        "bwrap": lambda: subprocess.run(inside(root, "/usr/bin/true"), check=True, capture_output=True),
        "process": lambda: subprocess.run(["/usr/bin/true"], check=True, capture_output=True),
    }
    try:
        other = stack.enter_context(_other_server())
    except node.NodeMissing as error:
        print(f"  {OTHER} is left out: {error}")
    else:
        acts["other"] = lambda: _answer(other, "run_command", {"command": "true"})
    took = _in_turn(acts)
    note = f"bare process {took['process'] * 1e3:.1f} ms"
    made = [
        Ratio(
            "command.run of true in its sandbox, over stdio, vs a bwrap line",
            took["ours"],
            took["bwrap"],
            1.3,
            note=note,
        )
    ]
    if "other" in took:
        made.append(Ratio(f"the same, vs {OTHER} without a sandbox", took["ours"], took["other"], 1.5, note=note))
    return made


def _start_and_stop(ours: Lines, root: Path) -> list[Ratio]:
    line = inside(root, "/bin/sh", "-c", "echo; exec sleep 60")
    times: dict[str, list[float]] = {name: [] for name in ("start", "stop", "bare start", "bare stop")}
    for _ in range(_ROUNDS // 2):
        began = time.perf_counter()
        bare = subprocess.Popen(line, stdout=subprocess.PIPE)
        assert bare.stdout is not None and bare.stdout.read(1)
        times["bare start"].append(time.perf_counter() - began)
        began = time.perf_counter()
        bare.kill()
        bare.wait()
        times["bare stop"].append(time.perf_counter() - began)
        bare.stdout.close()
        began = time.perf_counter()
        started = _operation(ours, "command.start", ".", {"command": ["sleep", "60"]})
        times["start"].append(time.perf_counter() - began)
        time.sleep(_BETWEEN_S)
        began = time.perf_counter()
        _operation(ours, "command.stop", started["processId"], options={"signal": "kill"})
        times["stop"].append(time.perf_counter() - began)
        time.sleep(_BETWEEN_S)
    mid = {name: statistics.median(each) for name, each in times.items()}
    return [
        Ratio(
            "command.start in its sandbox, vs a bwrap line until its program runs", mid["start"], mid["bare start"], 1
        ),
        Ratio("command.stop until it is gone, vs kill and wait of that line", mid["stop"], mid["bare stop"], 1),
    ]


def _in_turn(acts: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The median of each."""
    times: dict[str, list[float]] = {name: [] for name in acts}
    for number in range(_ROUNDS + 3):
        for name, act in acts.items():
            began = time.perf_counter()
            act()
            if number >= 3:
                times[name].append(time.perf_counter() - began)
            time.sleep(_BETWEEN_S)
    return {name: statistics.median(each) for name, each in times.items()}


def inside(root: Path, *argv: str) -> list[str]:
    """A bubblewrap line as a person would write it: everything unshared, the system read-only, the folder writable."""
    system = ["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    return ["bwrap", *system, "--tmpfs", "/tmp", "--bind", str(root), str(root), "--chdir", str(root), *argv]


@contextmanager
def _other_server() -> Iterator[Lines]:
    program = node.install(OTHER) / "node_modules" / "mcp-server-commands" / "build" / "index.js"
    process = subprocess.Popen(
        [str(node.node()), str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None and process.stdout is not None
    lines = Lines(process.stdout.fileno(), process.stdin.fileno(), process)
    try:
        lines.ask("initialize", _CALLED)
        lines.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        yield lines
    finally:
        process.stdin.close()
        process.terminate()
        process.wait(10)
        process.stdout.close()


def _operation(lines: Lines, op: str, target: str, given: Any = None, options: Any = None) -> Any:
    parts = {"scope": "app", "op": op, "target": target, "input": given, "options": options}
    answer = _answer(lines, "computer_operation", {name: part for name, part in parts.items() if part is not None})
    return answer["structuredContent"]["data"]


def _answer(lines: Lines, tool: str, arguments: dict[str, Any]) -> Any:
    result = lines.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
    if result.get("isError"):
        raise RuntimeError(str(result["content"])[:500])
    return result
