"""A service with real language servers on its path, and a small project for them."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from computer_linker.providers.language.pool import LanguageServers
from support import node
from support.agents import road_with
from support.road import Road, folder_scope

PROJECT = {
    "app.py": "from shapes import Base, area\n\n\nclass Square(Base):\n    pass\n\n\ndef main() -> str:\n    return area(2)\n",
    "shapes.py": "class Base:\n    pass\n\n\ndef area(side: int) -> str:\n    '😀 wide'; return str(side * side)\n",
    "web/main.ts": "import { add } from './sum';\nexport const total: number = add(1, 2);\n",
    "web/sum.ts": "export function add(a: number, b: number): number {\n  return a + b;\n}\n",
    "web/tsconfig.json": '{"compilerOptions": {"strict": true}}\n',
    "c/main.cpp": '#include "twice.h"\nint main() { return twice(2); }\n',
    "c/twice.h": "inline int twice(int x) { return 2 * x; }\n",
    "c/compile_flags.txt": "-std=c++17\n",
    ".env": "TOKEN=sesame\n",
}


def make(root: Path, files: dict[str, str] | None = None) -> None:
    for name, text in (PROJECT if files is None else files).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def clangd() -> Path:
    """The folder of clangd, from Debian's package of that name."""
    found = shutil.which("clangd")
    if found is None:
        pytest.skip("not installed: clangd (Debian: clangd)")
    return Path(found).parent


def path_with(*folders: Path) -> dict[str, str]:
    """A service's environment with these folders on its path."""
    path = ":".join(map(str, (*folders, "/usr/local/bin", "/usr/bin", "/bin")))
    return {"PATH": path, "HOME": os.environ.get("HOME", "/root")}


def all_servers() -> dict[str, str]:
    """An environment with pyright, typescript-language-server and clangd."""
    return path_with(node.needed(node.pyright), node.needed(node.typescript_language_server), clangd())


@asynccontextmanager
async def service(
    tmp_path: Path,
    environ: dict[str, str] | None = None,
    files: dict[str, str] | None = None,
    scopes: list[dict[str, Any]] | None = None,
) -> AsyncIterator[Road]:
    """A service over a project, with language servers on its path."""
    root = tmp_path / "root"
    root.mkdir()
    make(root, files)
    given = [folder_scope(root)] if scopes is None else scopes
    async with road_with(tmp_path, all_servers() if environ is None else environ, given) as road:
        yield road


def running(road: Road) -> list[str]:
    """The servers that run, by name."""
    return sorted(server.kind.name for server in road.app.services.use(LanguageServers).running())
