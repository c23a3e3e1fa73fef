"""What the models behind Codex and Claude Code receive for calls of three dozen kinds, kept as files in `seen/`.

The clients and the service are real, the models scripted. Each file has what one call gave the model, with ids, times and
durations replaced. `RECORD_SEEN=1` writes the files anew; without it the test compares.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.transports.mcp.profiles import profile_of
from support import node
from support.documents import excel, pdf, row, word
from support.language import path_with
from support.models.messages import messages_model
from support.models.responses import responses_model
from support.models.scripted import Model
from support.road import folder_scope
from support.service import PROGRAM, Service, serving

pytestmark = pytest.mark.clients
SEEN = Path(__file__).parent / "seen"
OBSERVE, CHANGE, INFO = "computer_observe", "computer_operation", "get_computer_info"


def op(name: str, target: Any = None, **parts: Any) -> dict[str, Any]:
    return {"scope": "app", "op": name, **({} if target is None else {"target": target}), **parts}


CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("info", INFO, {}),
    ("schema", INFO, {"operations": ["file.patch"]}),
    ("tree", OBSERVE, op("file.tree", ".")),
    ("list", OBSERVE, op("file.list", "src")),
    ("find", OBSERVE, op("file.find", ".", input={"pattern": "*.py"})),
    ("search", OBSERVE, op("file.search", "src", input={"query": "return"}, options={"contextBefore": 1})),
    ("read", OBSERVE, op("file.read", "src/shop.py")),
    ("read-long", OBSERVE, op("file.read", "service.log")),
    ("read-many", OBSERVE, op("file.read_many", input={"paths": ["README.md", "missing.md"]})),
    ("stat", OBSERVE, op("file.stat", "README.md", options={"hash": True})),
    ("read-pdf", OBSERVE, op("file.read", "prices.pdf")),
    ("read-sheet", OBSERVE, op("file.read", "sales.xlsx")),
    ("read-letter", OBSERVE, op("file.read", "letter.docx")),
    ("search-documents", OBSERVE, op("file.search", ".", input={"query": "Lamp"}, options={"documents": True})),
    ("map", OBSERVE, op("code.map", ".")),
    ("outline", OBSERVE, op("code.outline", "src/shop.py")),
    ("symbols", OBSERVE, op("code.search_symbols", ".", input={"query": "price"})),
    ("definition", OBSERVE, op("code.definition", "src/basket.py", input={"symbol": "price", "line": 5})),
    ("references", OBSERVE, op("code.references", "src/shop.py", input={"symbol": "price"})),
    ("hover", OBSERVE, op("code.hover", "src/basket.py", input={"symbol": "price", "line": 5})),
    ("callers", OBSERVE, op("code.hierarchy", "src/shop.py", input={"symbol": "price", "kind": "callers"})),
    ("status", OBSERVE, op("git.status", ".")),
    ("diff", OBSERVE, op("git.diff", ".")),
    ("log", OBSERVE, op("git.log", ".")),
    ("missing", OBSERVE, op("file.read", "nowhere.txt")),
    ("misspelt", OBSERVE, op("file.read", "README.md", options={"startline": 2})),
    ("refused", OBSERVE, op("file.write", "made.txt", input={"content": "x"})),
    ("patch", CHANGE, op("file.patch", "src/shop.py", input={"edits": [{"oldText": "0.2", "newText": "0.25"}]})),
    ("edit-sheet", CHANGE, op("document.edit", "sales.xlsx", input={"cells": [{"range": "B2", "values": 12}]})),
    ("edit-letter", CHANGE, op("document.edit", "letter.docx", input={"texts": [{"oldText": "May", "newText": "June"}]})),
    ("rename", CHANGE, op("code.rename", "src/shop.py", input={"symbol": "price", "newName": "gross"})),
    ("break", CHANGE, op("file.patch", "src/basket.py", input={"edits": [{"oldText": "nets))", "newText": "net))"}]})),
    ("diagnostics", OBSERVE, op("code.diagnostics")),
    ("undo", CHANGE, op("file.undo", input={"last": True})),
    ("run", CHANGE, op("command.run", input={"command": ["cat", "service.log"]})),
    ("failing", CHANGE, op("command.run", input={"command": ["ls", "nowhere"]})),
    ("batch", CHANGE, op("batch.run", input={"operations": [
        {"op": "file.find", "input": {"pattern": "*.md"}}, {"op": "file.read", "target": "README.md"},
    ]})),
]  # fmt: skip


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    place = tmp_path_factory.mktemp("seen")
    with_pyright = path_with(node.needed(node.pyright))
    with serving(place, env=with_pyright, scopes=[folder_scope(place / "root", allowedCommands=["*"])]) as service:
        yield service


@pytest.fixture
def service(running: Service) -> Service:
    """The service over a new project, whatever an earlier test left of it."""
    for path in running.root.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    make_project(running.root)
    return running


def make_project(root: Path) -> None:
    """A small shop with a change that is not committed, and a log that is longer than any client shows."""
    files = {
        "README.md": "# Shop\n\nPrices with tax.\n",
        "src/shop.py": "TAX = 0.2\n\n\ndef price(net: float) -> float:\n    return net * (1 + TAX)\n",
        "src/basket.py": "from shop import price\n\n\ndef total(nets: list[float]) -> float:\n    return sum(map(price, nets))\n",
        "service.log": "".join(f"request {number} served\n" for number in range(9000)),
        ".gitignore": "*.log\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    sales = row(1, "Item", "Price"), row(2, "Lamp", 10), row(3, "Desk", 90)
    (root / "sales.xlsx").write_bytes(excel("".join(sales)))
    (root / "prices.pdf").write_bytes(pdf("Lamp 10", "Desk 90", title="Prices"))
    (root / "letter.docx").write_bytes(word("Dear Ann,", "the Lamp comes on 5 May."))
    git = ["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.com", "-C", str(root)]
    fixed = {**os.environ, "GIT_AUTHOR_DATE": "2026-01-01T12:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T12:00:00Z"}
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Open the shop"]):
        subprocess.run([*git, *words], check=True, timeout=30, env=fixed)
    (root / "README.md").write_text("# Shop\n\nPrices with and without tax.\n")


@pytest.fixture
def user() -> Iterator[Path]:
    """A home folder; outside the temporary folder, where Codex would not work."""
    home = Path(tempfile.mkdtemp(prefix="client-home-", dir="/var/tmp"))
    (home / "work").mkdir()
    yield home
    shutil.rmtree(home, ignore_errors=True)


def run(user: Path, command: list[str], **env: str) -> None:
    given = {"HOME": str(user), "PATH": "/usr/local/bin:/usr/bin:/bin", "TERM": "dumb", "NO_COLOR": "1", **env}
    done = subprocess.run(
        command, cwd=user / "work", env=given, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


def without_chance(text: str) -> str:
    """The text with what differs from run to run replaced."""
    text = re.sub(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b|(?<=^undo: )[0-9A-HJKMNP-TV-Z]{7}$", "OPERATION-ID", text, flags=re.M)
    text = re.sub(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME", text)
    text = re.sub(r"(exit \d+), [\d.]+ s", r"\1, N s", text)
    text = re.sub(r"Wall time: [\d.]+ seconds", "Wall time: N seconds", text)
    text = re.sub(r"\b[0-9a-f]{64}\b", "SHA256", text)
    # How small a package gets depends on the compressor, and with it the commit.
    text = re.sub(r"(\.(?:docx|xlsx), )\d+ bytes", r"\1N bytes", text)
    text = re.sub(r"^[0-9a-f]{10}(?= 2026-01-01)", "COMMIT", text, flags=re.M)
    text = re.sub(r"programs: .*", "programs: (those of this machine)", text)
    text = re.sub(r"commands: .*", "commands: (the boundary of this machine)", text)
    return re.sub(r"(platform|status): .*", r"\1: (of this machine)", text)


def shortened(text: str) -> str:
    """The text without the middle of its two long parts, so that a person can read the file."""
    lines = text.splitlines()
    at = next((number for number, line in enumerate(lines) if " bytes left out. " in line), None)
    if at is not None:
        head, tail = "\n".join(lines[:at]), "\n".join(lines[at + 1 :])
        return "\n".join([shortened(head), lines[at], shortened(tail)])
    if len(lines) <= 120:
        return text
    return "\n".join(
        [*lines[:8], f"(… {len(lines) - 16} lines that the model has and this file has not …)", *lines[-8:]]
    )


def compare(client: str, received: list[str]) -> None:
    assert len(received) == len(CALLS)
    cut = profile_of(client).cut or 0
    folder = SEEN / client
    if os.environ.get("RECORD_SEEN"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    for number, ((name, _, request), text) in enumerate(zip(CALLS, received, strict=True), 1):
        assert len(text.encode()) <= cut + 200, f"{name} is longer than {client} shows"
        path = folder / f"{number:02}-{name}.txt"
        shown = f"{json.dumps(request)}\n----\n{shortened(without_chance(text).rstrip())}\n"
        if os.environ.get("RECORD_SEEN"):
            path.write_text(shown)
        # A signature that grew is no reason to fail here: the catalogue has tests of its own.
        elif name not in ("info", "schema"):
            assert shown == path.read_text(), path.name


def test_codex(service: Service, user: Path) -> None:
    program = node.needed(node.codex)
    steps = [{"call": tool, "namespace": "mcp__computer_linker", "args": args} for _, tool, args in CALLS]
    with responses_model(*steps, {"say": "done"}) as model:
        settings = user / ".codex"
        settings.mkdir()
        (settings / "config.toml").write_text(
            'model = "mock-model"\nmodel_provider = "scripted"\ncheck_for_update_on_startup = false\n'
            f'[model_providers.scripted]\nname = "scripted"\nbase_url = "http://127.0.0.1:{model.port}/v1"\n'
            'wire_api = "responses"\nrequest_max_retries = 0\n[analytics]\nenabled = false\n'
            f"[mcp_servers.computer-linker]\ncommand = {json.dumps(PROGRAM[0])}\nargs = {json.dumps([*PROGRAM[1:], 'stdio'])}\n"
            'required = true\ndefault_tools_approval_mode = "approve"\n'
            f'[mcp_servers.computer-linker.env]\nCOMPUTER_LINKER_HOME = "{service.home}"\n'
            'COMPUTER_LINKER_MCP_TOOL_SURFACE = "split"\n'
        )
        run(user, [str(program), "exec", "--json", "--skip-git-repo-check", "Go."], CODEX_HOME=str(settings))
        compare("codex", codex_received(model))


def codex_received(model: Model) -> list[str]:
    items = [item for item in model.requests[-1]["input"] if item.get("type") == "function_call_output"]
    return [text_of(item["output"]) for item in items]


def test_claude_code(service: Service, user: Path) -> None:
    program = node.needed(node.claude)
    steps = [{"call": f"mcp__computer-linker__{tool}", "args": args} for _, tool, args in CALLS]
    server = {
        "type": "stdio", "command": PROGRAM[0], "args": [*PROGRAM[1:], "stdio"],
        "env": {"COMPUTER_LINKER_HOME": str(service.home), "COMPUTER_LINKER_MCP_TOOL_SURFACE": "split"},
    }  # fmt: skip
    (user / "mcp.json").write_text(json.dumps({"mcpServers": {"computer-linker": server}}))
    with messages_model(*steps, {"say": "done"}) as model:
        command = [str(program), "-p", "Go.", "--strict-mcp-config", "--mcp-config", str(user / "mcp.json")]
        command += ["--allowedTools", "mcp__computer-linker"]
        run(
            user, command, ANTHROPIC_BASE_URL=f"http://127.0.0.1:{model.port}", ANTHROPIC_API_KEY="scripted",
            DISABLE_AUTOUPDATER="1", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        )  # fmt: skip
        compare("claude-code", claude_received(model))
        # The tools are in the prompt from the first turn; otherwise Claude Code shows their names alone.
        first = {tool["name"]: tool for tool in next(one for one in model.requests if one.get("tools"))["tools"]}
        for name in (INFO, OBSERVE, CHANGE):
            assert not first[f"mcp__computer-linker__{name}"].get("defer_loading"), name
        assert "file.patch(" in first[f"mcp__computer-linker__{CHANGE}"]["description"]


def claude_received(model: Model) -> list[str]:
    last = max(model.requests, key=lambda request: len(request["messages"]))
    blocks = [
        block for message in last["messages"] if isinstance(message["content"], list) for block in message["content"]
    ]
    return [text_of(block["content"]) for block in blocks if block.get("type") == "tool_result"]


def readme_line(client: str) -> list[str]:
    """The line of the README that connects a client, with this project's own program in it."""
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    found = re.search(rf"`({client} mcp add [^`]*) -- computer-linker stdio`", readme)
    assert found is not None
    return [*shlex.split(found.group(1))[1:], "--", *PROGRAM, "stdio"]


def test_codex_reads_unasked_when_connected_by_the_readme_s_line(service: Service, user: Path) -> None:
    program = str(node.needed(node.codex))
    read = {"call": OBSERVE, "namespace": "mcp__computer_linker", "args": op("file.read", "README.md")}
    write = {
        "call": CHANGE, "namespace": "mcp__computer_linker",
        "args": op("file.write", "made.txt", input={"content": "x"}),
    }  # fmt: skip
    env = {"CODEX_HOME": str(user / ".codex"), "COMPUTER_LINKER_HOME": str(service.home)}
    with responses_model(read, write, {"say": "done"}) as model:
        (user / ".codex").mkdir()
        (user / ".codex" / "config.toml").write_text(
            'model = "mock-model"\nmodel_provider = "scripted"\ncheck_for_update_on_startup = false\n'
            f'[model_providers.scripted]\nname = "scripted"\nbase_url = "http://127.0.0.1:{model.port}/v1"\n'
            'wire_api = "responses"\nrequest_max_retries = 0\n[analytics]\nenabled = false\n'
        )
        line = readme_line("codex")
        where = ["--env", f"COMPUTER_LINKER_HOME={service.home}"]
        run(user, [program, *line[:3], *where, *line[3:]], **env)
        run(user, [program, "exec", "--json", "--skip-git-repo-check", "Go."], **env)
        answers = codex_received(model)
    assert "Prices with and without tax." in answers[0]
    assert not (service.root / "made.txt").exists(), answers[1]


def test_claude_code_reads_unasked_when_connected_by_the_readme_s_line(service: Service, user: Path) -> None:
    """The line writes the rules that Claude Code needs; nothing is allowed on its command line."""
    program = str(node.needed(node.claude))
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    found = re.search(r"\| Claude Code \| `computer-linker ([^`]*)` \|", readme)
    assert found is not None
    run(user, [*PROGRAM, *found.group(1).split()], COMPUTER_LINKER_HOME=str(service.home))
    called = [INFO, OBSERVE, CHANGE]
    args = [{}, op("file.read", "README.md"), op("file.write", "made.txt", input={"content": "x"})]
    steps = [{"call": f"mcp__computer-linker__{name}", "args": given} for name, given in zip(called, args, strict=True)]
    with messages_model(*steps, {"say": "done"}) as model:
        run(
            user, [program, "-p", "Go."], ANTHROPIC_BASE_URL=f"http://127.0.0.1:{model.port}",
            ANTHROPIC_API_KEY="scripted", DISABLE_AUTOUPDATER="1", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        )  # fmt: skip
        answers = claude_received(model)
    assert "scope app" in answers[0], answers
    assert "Prices with and without tax." in answers[1], answers
    assert not (service.root / "made.txt").exists(), answers[2]


def text_of(output: Any) -> str:
    if isinstance(output, str):
        return output
    return "\n".join(part.get("text", f"[{part.get('type')}]") for part in output)
