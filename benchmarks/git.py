"""Git: our operations through the whole road against git itself in the same repositories."""

import os
import subprocess
import sys
from pathlib import Path

from pydantic_core import to_json

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.ratio import Ratio, compared, in_a_folder
from computer_linker.providers.git.repository import Memory
from computer_linker.providers.git.run import Git
from support.repositories import git
from support.road import LOCAL, Road, folder_scope

_FILES = 20_000
_COMMITS = 5000


def run() -> list[Ratio]:
    """All figures of the family."""
    return in_a_folder(_run)


async def _run(folder: Path) -> list[Ratio]:
    _wide(folder / "wide")
    _long(folder / "long")
    async with Road.open(folder, [folder_scope(folder / name, name) for name in ("wide", "long")]) as road:
        status = await compared(
            41,
            lambda: _reply(road, "wide", "git.status"),
            lambda: _git(folder / "wide", "status", "--porcelain=v2", "--branch", "-z"),
        )
        plain = ("log", "-20", "--format=%H %an %aI %s")
        log = await compared(61, lambda: _reply(road, "long", "git.log"), lambda: _git(folder / "long", *plain))
        anew = await compared(31, lambda: _log_anew(road), lambda: _git(folder / "long", *plain))
    return [
        Ratio("git.status on 20,000 files, against git status", *status, 1.2),
        Ratio(
            "git.log of 20 on 5,000 commits, against git log",
            *log,
            1.2,
            note=f"head unchanged since the last call; looked for anew {anew[0] / anew[1]:.2f}x",
        ),
    ]


async def _reply(road: Road, scope: str, op: str) -> bytes:
    reply = await road.app.dispatcher.call_wire({"scope": scope, "op": op, "target": "."}, LOCAL)
    if not reply.ok:
        raise RuntimeError(reply.envelope["error"]["message"])
    return bytes(to_json(reply.envelope, by_alias=True))


async def _log_anew(road: Road) -> None:
    """A log of which nothing is remembered."""
    road.app.services.use(Git).memory = Memory()
    await _reply(road, "long", "git.log")


def _git(folder: Path, *args: str) -> bytes:
    env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_OPTIONAL_LOCKS": "0"}
    return subprocess.run(["/usr/bin/git", *args], cwd=folder, env=env, stdout=subprocess.PIPE, check=True).stdout


def _wide(root: Path) -> None:
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    for number in range(_FILES):
        folder = root / f"d{number // 100:03d}"
        if number % 100 == 0:
            folder.mkdir()
        (folder / f"f{number}.txt").write_text(f"{number}\n")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "all")
    # Younger than the index, git would have to read each file again at every status.
    os.utime(root / ".git" / "index")
    git(root, "update-index", "--refresh")


def _long(root: Path) -> None:
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    stream = []
    for number in range(_COMMITS):
        text = f"commit {number}"
        stream.append(
            f"commit refs/heads/main\ncommitter Ada <ada@example.org> {1_700_000_000 + number} +0000\n"
            f"data {len(text)}\n{text}\nM 100644 inline f{number % 50}.txt\ndata {len(text)}\n{text}\n"
        )
    subprocess.run(["git", "fast-import", "--quiet"], cwd=root, input="".join(stream).encode(), check=True)
    git(root, "reset", "-q", "--hard")
