"""agent-browser and Chromium on pages of the tests' own, in a service whose environment names them."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from computer_linker.computer.base import Computer
from computer_linker.providers.processes.prepare import Preparation
from computer_linker.providers.sandbox.sandbox import Sandbox
from computer_linker.service.app import App
from support import node
from support.agents import road_with
from support.road import Road, folder_scope

FORM = """<!doctype html><title>A form</title><h1>Order</h1>
<label>Name <input id=name></label> <label>Secret <input id=secret type=password></label>
<button id=send onclick="document.title='Sent';out.textContent='Thank you, '+document.getElementById('name').value;console.log('sent one')">Send</button>
<button id=idle>Idle</button> <a href="two.html">Next</a> <a href="file:///etc/hostname">Out</a>
<p id=out></p><script>setTimeout(() => { throw new Error('a late fault') }, 5)</script>
"""


def needed() -> Path:
    """The folder with agent-browser in it under its own name; skips, naming what is missing."""
    missing = [name for name in ("chromium", "bwrap") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    program = node.needed(node.agent_browser)
    folder = node.TOOLS / "agent-browser-bin" / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    named = folder / "agent-browser"
    if not named.exists() or not os.path.samefile(named, program):
        spare = folder / f"new-{os.getpid()}"
        os.link(program, spare)
        spare.chmod(0o755)
        spare.replace(named)
    return folder


@asynccontextmanager
async def browser_road(tmp_path: Path, **policy: Any) -> AsyncIterator[Road]:
    """A road on which browsers can be had; scope `app` holds the form."""
    root = tmp_path / "root"
    root.mkdir(exist_ok=True)
    (root / "form.html").write_text(FORM)
    (root / "two.html").write_text("<!doctype html><title>Two</title><h1>The second page</h1><button>Send</button>")
    rules = {"allowedCommands": ["agent-browser *"], **policy}
    async with road_with(tmp_path, _environ(), [folder_scope(root, "app", **rules)]) as road:
        yield road


def preparation_with(app: App) -> None:
    """Let a service find agent-browser."""
    services = app.services
    services.provide(Preparation, Preparation(services.use(Computer), services.use(Sandbox), _environ()))


def _environ() -> dict[str, str]:
    return {"PATH": f"{needed()}:/usr/local/bin:/usr/bin:/bin", "HOME": os.environ.get("HOME", "/root")}


async def ref_of(road: Road, role: str, name: str, **parts: Any) -> str:
    """The reference of the one element of this role and name on the open page."""
    shown = await road.data("browser.snapshot", **parts)
    found = [node["ref"] for node in shown["nodes"] if (node["role"], node["name"]) == (role, name)]
    assert len(found) == 1, shown["nodes"]
    return str(found[0])


def left_running(home: Path) -> list[str]:
    """The command lines of processes that have this service's folder in them."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
                environ = (entry / "environ").read_bytes()
            except OSError:
                continue
            if str(home).encode() in line + environ:
                found.append(line.replace(b"\0", b" ").decode(errors="replace")[:200])
    return found
