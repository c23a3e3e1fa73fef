"""Views: a command on one against the same command without, its diff against git, and keeping it against a copy."""

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.ratio import Ratio, in_a_folder
from support.road import LOCAL, Road, folder_scope

_ROUNDS = 40
_FOLDERS = 1000
_IN_FOLDER = 100
_CHANGED = 10_000
_KEEPS = 3
_CHANGE = (
    "import pathlib\n"
    "for folder in range(1000):\n"
    "    for file in range(10):\n"
    "        pathlib.Path(f'd{folder}/f{file}').write_text(f'changed {folder} {file}\\n')\n"
)


def run() -> list[Ratio]:
    """All figures of the family; they need bubblewrap."""
    return in_a_folder(_run)


async def _run(folder: Path) -> list[Ratio]:
    small, large = folder / "small", folder / "large"
    small.mkdir()
    _fill(large)
    scopes = [folder_scope(small, "small", allowedCommands=["*"]), folder_scope(large, "large", allowedCommands=["*"])]
    async with Road.open(folder, scopes) as road:
        return [*await _command(road), *await _diff_and_keep(road, large)]


def _fill(root: Path) -> None:
    for number in range(_FOLDERS):
        folder = root / f"d{number}"
        folder.mkdir(parents=True)
        for file in range(_IN_FOLDER):
            (folder / f"f{file}").write_text(f"text {number} {file}\n")


async def _call(road: Road, op: str, target: str, scope: str, **parts: Any) -> Any:
    reply = await road.app.dispatcher.call_wire({"scope": scope, "op": op, "target": target, **parts}, LOCAL)
    if not reply.ok:
        raise RuntimeError(reply.envelope["error"]["message"])
    return reply.envelope["data"]


async def _command(road: Road) -> list[Ratio]:
    """`touch` on a view and without; the view is dropped outside the measured time."""
    given = {"input": {"command": ["touch", "made"]}}
    views: list[str] = []

    async def viewed() -> None:
        ran = await _call(road, "command.run", ".", "small", **given, options={"view": True})
        views.append(ran.view.view_id)

    async def sandboxed() -> None:
        await _call(road, "command.run", ".", "small", **given, options={"undo": False})

    async def undoable() -> None:
        await _call(road, "command.run", ".", "small", **given)

    async def rest() -> None:
        (Path(road.app.config.scopes[0].roots[0]) / "made").unlink(missing_ok=True)
        while views:
            await _call(road, "view.drop", views.pop(), "small")

    mine, undo, theirs = await _medians([viewed, undoable, sandboxed], rest)
    return [
        Ratio("command.run on a view, against the sandboxed command", mine, theirs, 1.3),
        Ratio("command.run that can be undone, against the sandboxed command", undo, theirs, 1.3),
    ]


async def _medians(acts: list[Callable[[], Awaitable[None]]], rest: Callable[[], Awaitable[None]]) -> list[float]:
    times: list[list[float]] = [[] for _ in acts]
    for number in range(_ROUNDS + 3):
        for act, taken in zip(acts, times, strict=True):
            started = time.perf_counter()
            await act()
            if number >= 3:
                taken.append(time.perf_counter() - started)
            await rest()
    return [statistics.median(taken) for taken in times]


async def _diff_and_keep(road: Road, large: Path) -> list[Ratio]:
    git = _repository(large)
    line = {"input": {"command": ["python3", "-c", _CHANGE]}, "options": {"view": True, "timeoutSeconds": 300}}
    view_id = (await _call(road, "command.run", ".", "large", **line)).view.view_id
    # The same changes in a copy, for git and for cp.
    changed = large.parent / "changed"
    shutil.copytree(large, changed, copy_function=shutil.copy2)
    subprocess.run([sys.executable, "-c", _CHANGE], cwd=changed, check=True)
    diffs, statuses = [], []
    for _ in range(5):
        started = time.perf_counter()
        await _call(road, "view.show", view_id, "large", options={"maxChanges": 10_000, "maxDiffBytes": 0})
        diffs.append(time.perf_counter() - started)
        started = time.perf_counter()
        subprocess.run([*git, f"--work-tree={changed}", "status", "--porcelain"], check=True, stdout=subprocess.DEVNULL)
        statuses.append(time.perf_counter() - started)
    stored = _bytes(road.home / "views" / view_id)
    sizes = Ratio(
        "bytes that a view of 100,000 files stores", stored, _bytes(changed) / 10, 2, "B", "a tenth of them changed"
    )
    diff = Ratio(
        "diff of 10,000 changed files in 100,000, against git status",
        statistics.median(diffs),
        statistics.median(statuses),
        2,
    )
    return [diff, await _keeping(road, line, view_id, changed), sizes]


async def _keeping(road: Road, line: dict[str, Any], view_id: str, changed: Path) -> Ratio:
    """Keep against `cp -a` of the changed files over those that were there, both to the disk."""
    kept, copied = [], []
    names = [f"d{folder}/f{file}" for folder in range(_FOLDERS) for file in range(_CHANGED // _FOLDERS)]
    target = changed.parent / "target"
    for _ in range(_KEEPS):
        started = time.perf_counter()
        await _call(road, "view.keep", view_id, "large")
        kept.append(time.perf_counter() - started)
        await _call(road, "file.undo", ".", "large", input={"operationId": "last"})
        view_id = (await _call(road, "command.run", ".", "large", **line)).view.view_id
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        started = time.perf_counter()
        subprocess.run(
            ["cp", "-a", "--parents", "-t", str(target), *names],
            cwd=changed,
            check=True,
            env={**os.environ, "LC_ALL": "C"},
        )
        copied.append(time.perf_counter() - started)
    return Ratio("keep of 10,000 files, against cp -a of them", statistics.median(kept), statistics.median(copied), 2)


def _repository(large: Path) -> list[str]:
    """A repository beside the folder, with its files in the index."""
    place = large.parent / "repository"
    git = ["git", f"--git-dir={place}"]
    subprocess.run(["git", "init", "-q", "--bare", str(place)], check=True)
    subprocess.run([*git, "config", "core.bare", "false"], check=True)
    subprocess.run([*git, f"--work-tree={large}", "add", "-A"], check=True)
    return git


def _bytes(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())
