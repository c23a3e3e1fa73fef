"""Agents: a whole codex.run, with its snapshots, sandbox and records, against the bare `codex exec` it cannot be quicker than."""

import asyncio
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.ratio import Ratio, in_a_folder
from computer_linker.providers.agents.codex import Codex
from computer_linker.providers.agents.program import Ask
from support import node
from support.agents import Program, codex_on, environ_for, road_with
from support.models.responses import responses_model, shell
from support.repositories import git
from support.road import folder_scope

_ROUNDS = 7
_FILES = 2000


def run() -> list[Ratio]:
    """One turn with one command and one edit, in a repository of 2,000 files."""
    try:
        node.codex()
    except node.NodeMissing:
        return []
    return in_a_folder(_run)


async def _run(folder: Path) -> list[Ratio]:
    root = folder / "root"
    _project(root)
    ours: list[float] = []
    bare: list[float] = []
    steps = (shell("date +%N > made.txt"), {"say": "done"})
    with responses_model(*steps) as model, codex_on(model) as codex:
        async with road_with(folder, environ_for(codex), [folder_scope(root, allowedCommands=["codex *"])]) as road:
            await road.data("codex.run", ".", input={"prompt": "warm up"})
            for _ in range(_ROUNDS):
                started = time.perf_counter()
                await road.data("codex.run", ".", input={"prompt": "go"})
                ours.append(time.perf_counter() - started)
                bare.append(await asyncio.to_thread(_bare, codex, root))
    return [
        Ratio(
            job=f"codex.run in {_FILES} files",
            ours=statistics.median(ours),
            limit=statistics.median(bare),
            reach=1.5,
            note="against bare codex exec; ours adds two snapshots, a second sandbox, and durable records",
        )
    ]


def _bare(codex: Program, root: Path) -> float:
    """The same program with the same arguments and as small an environment, so that only what we add differs."""
    ask = Ask(mode="workspace-write", network=False, is_confined=True, where=str(root))
    line = Codex().line(ask, codex.environ, root)
    env = {**environ_for(codex), **line.env, "HOME": "/nonexistent"}
    started = time.perf_counter()
    argv = [str(codex.path), *line.argv[1:]]
    subprocess.run(argv, cwd=root, env=env, input=b"go", capture_output=True, check=True)
    return time.perf_counter() - started


def _project(root: Path) -> None:
    for number in range(_FILES):
        place = root / f"d{number % 40}" / f"f{number}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{number}\n" * 20)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "all")
