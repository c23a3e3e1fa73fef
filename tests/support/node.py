"""Node programs the tests run, pinned and installed from npm into .tools/ under the project, once."""

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
TOOLS = Path(__file__).resolve().parents[2] / ".tools"
NODE = "node@22.23.3"
CONFORMANCE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
TYPESCRIPT_SDK = "@modelcontextprotocol/sdk@1.32.2"
CODEX = "@openai/codex@0.166.0"
CLAUDE = "@anthropic-ai/claude-code@2.1.325"
GEMINI = "@google/gemini-cli@0.61.0"
OPENCODE = "opencode-ai@1.18.33"
AGENT_BROWSER = "agent-browser@0.41.0"
PYRIGHT = "pyright@1.1.414"
TYPESCRIPT_SERVER = "typescript-language-server@5.3.0"
TYPESCRIPT = "typescript@5.9.3"
AXE = "axe-core@4.14.0"
_INSTALL_DEADLINE_S = 600


class NodeMissing(Exception):
    """A Node program cannot be had here; the message names what is missing."""


def needed(program: Callable[[], T]) -> T:
    """One of the programs below; skips the test where it cannot be had, naming the program and what is missing."""
    import pytest

    try:
        return program()
    except NodeMissing as error:
        pytest.skip(f"not installed: {program.__name__.replace('_', '-')} ({error})")


def node() -> Path:
    """Node 22: the conformance suite and the Inspector do not run on older ones."""
    return install(NODE) / "node_modules" / "node" / "bin" / "node"


def conformance() -> list[str]:
    """The command of the official conformance suite."""
    package = install(CONFORMANCE) / "node_modules" / "@modelcontextprotocol" / "conformance"
    return [str(node()), str(package / "dist" / "index.js")]


def inspector() -> list[str]:
    """The command of the MCP Inspector."""
    return [str(node()), str((install(INSPECTOR) / "node_modules" / ".bin" / "mcp-inspector").resolve())]


def axe_core() -> str:
    """The script of axe, which looks for barriers in a page."""
    return (install(AXE) / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")


def codex() -> Path:
    """Codex's own program, which runs without Node."""
    return _native(CODEX, "node_modules/@openai/codex-linux-*/vendor/*/bin/codex")


def claude() -> Path:
    """Claude Code's own program, which runs without Node."""
    return _native(CLAUDE, "node_modules/@anthropic-ai/claude-code-linux-*/claude")


def gemini() -> list[str]:
    """The command of Gemini CLI."""
    return [str(node()), str((install(GEMINI) / "node_modules" / ".bin" / "gemini").resolve())]


def opencode() -> Path:
    """opencode's own program, which runs without Node."""
    return _native(OPENCODE, "node_modules/opencode-linux-*/bin/opencode")


def agent_browser() -> Path:
    """agent-browser's own program, which runs without Node."""
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    return _native(AGENT_BROWSER, f"node_modules/agent-browser/bin/agent-browser-linux-{machine}")


def pyright() -> Path:
    """The folder of pyright's programs."""
    return install(PYRIGHT) / "node_modules" / ".bin"


def typescript_language_server() -> Path:
    """The folder of the TypeScript server's program, with its TypeScript beside it."""
    return install(TYPESCRIPT_SERVER, beside=(TYPESCRIPT,)) / "node_modules" / ".bin"


def _native(package: str, pattern: str) -> Path:
    # Some packages come twice, once for musl; Codex's only one has that word further down, in its folder of programs.
    found = sorted(path for path in install(package).glob(pattern) if "musl" not in str(path).partition("/vendor/")[0])
    if not found:
        raise NodeMissing(f"{package} has no program for this machine")
    return found[0]


def install(package: str, overrides: dict[str, str] | None = None, beside: tuple[str, ...] = ()) -> Path:
    """The folder one pinned package is installed in. Raises NodeMissing, naming npm, when it cannot be had.

    `overrides` pin dependencies of it whose newest version a registry may lack; then its install scripts are not run either.
    `beside` are packages that it needs and does not name.
    """
    name, _, version = package.rpartition("@")
    folder = TOOLS / f"{name.replace('/', '-').lstrip('@')}-{version}"
    done = folder / ".installed"
    if done.exists():
        return folder
    TOOLS.mkdir(exist_ok=True)
    with locked(TOOLS / "lock"):
        if not done.exists():
            _npm_install((package, *beside), folder, overrides or {})
            done.touch()
    return folder


def _npm_install(packages: tuple[str, ...], folder: Path, overrides: dict[str, str]) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NodeMissing("npm is not installed")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps({"private": True, "overrides": overrides}))
    command = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--no-save", "--loglevel=error"]
    if overrides:
        command.append("--ignore-scripts")
    # The pinned programs run on the pinned Node, whatever the machine's own is.
    environment = {**os.environ, "npm_config_engine_strict": "false", "npm_config_update_notifier": "false"}
    try:
        run = subprocess.run(
            [*command, *packages], capture_output=True, text=True, timeout=_INSTALL_DEADLINE_S, env=environment
        )
    except subprocess.TimeoutExpired:
        raise NodeMissing(f"npm did not install {packages[0]} in time") from None
    if run.returncode:
        last = (run.stderr.strip().splitlines() or ["it gave no reason"])[0]
        raise NodeMissing(f"npm could not install {packages[0]}: {last}")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One installation at a time, however many test processes ask."""
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
