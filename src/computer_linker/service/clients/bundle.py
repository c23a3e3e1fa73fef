"""The MCPB bundle for Claude Desktop: a manifest and a start file that runs the program installed on this computer."""

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

from computer_linker import __version__
from computer_linker.service.client_setup import NAME, environment

_START = '''"""Started by the client that opened the bundle; speaks MCP on stdin and stdout."""

import sys

from computer_linker.__main__ import main

sys.argv = ["computer-linker", "stdio"]
sys.exit(main())
'''
_TOOLS = {
    "get_computer_info": "What this computer is, which scopes may be used, and whether it is ready.",
    "computer_operation": "Run one operation in a scope.",
    "get_operation_history": "What was done, by whom and with which outcome.",
}


def manifest(home: Path) -> dict[str, Any]:
    """What the client reads of the bundle."""
    run: dict[str, Any] = {"command": sys.executable, "args": ["-I", "${__dirname}/server/main.py"]}
    if environment(home):
        run["env"] = environment(home)
    return {
        "manifest_version": "0.3",
        "name": NAME,
        "display_name": "Computer Linker",
        "version": __version__,
        "description": "Controlled use of this computer: files, search, git, commands and desktop, within scopes you choose.",
        "author": {"name": "Computer Linker"},
        "license": "MIT",
        "server": {"type": "python", "entry_point": "server/main.py", "mcp_config": run},
        "tools": [{"name": name, "description": text} for name, text in _TOOLS.items()],
        "compatibility": {"runtimes": {"python": ">=3.11"}},
    }


def write_bundle(file: Path, home: Path) -> None:
    """Write the bundle; an older file of this name is replaced."""
    fresh = file.with_name(f".{file.name}.new")
    with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("manifest.json", json.dumps(manifest(home), indent=2) + "\n")
        bundle.writestr("server/main.py", _START)
    fresh.replace(file)
