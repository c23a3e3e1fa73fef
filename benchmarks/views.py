"""Views: a command on one against the same command without, its diff against git, and keeping it against a copy."""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.ratio import Ratio, in_a_folder
from support.road import LOCAL, Road, folder_scope

_COMMANDS = 60
_FOLDERS = 1000
_IN_FOLDER = 100
_CHANGED_IN_FOLDER = 10
_DIFFS = 5
_KEEPS = 4
_CHANGE = (
    "import pathlib\n"
    f"for folder in range({_FOLDERS}):\n"
    f"    for file in range({_CHANGED_IN_FOLDER}):\n"
    "        pathlib.Path(f'd{folder}/f{file}').write_text(f'changed {folder} {file}\\n')\n"
)
_TICKS = os.sysconf("SC_CLK_TCK")
Act = Callable[[], Awaitable[None]]


def run() -> list[Ratio]:
    """All figures of the family; they need bubblewrap."""
    return in_a_folder(_run)


async def _run(folder: Path) -> list[Ratio]:
    small, large = folder / "small", folder / "large"
    small.mkdir()
    _fill(large)
    _progress("100,000 files are made")
    given = [folder_scope(root, root.name, allowedCommands=["*"]) for root in (small, large)]
    async with Road.open(folder, given) as road:
        return [*await _command(road), *await _diff_and_keep(road, large)]


def _progress(what: str) -> None:
    print(f"  … {what}", file=sys.stderr, flush=True)


def _fill(root: Path) -> None:
    for number in range(_FOLDERS):
        folder = root / f"d{number}"
        folder.mkdir(parents=True)
        for file in range(_IN_FOLDER):
            (folder / f"f{file}").write_text(f"text {number} {file}\n")


@dataclass
class _Spent:
    """What one act took each time: seconds by the clock, and of processors."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    async def take(self, act: Act) -> None:
        started, used = time.perf_counter(), _processor_s()
        await act()
        self.wall.append(time.perf_counter() - started)
        self.processor.append(_processor_s() - used)


def _processor_s() -> float:
    """Of this process and all that it started: also what the launcher has reaped, which it counts by the tick."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    children = " ".join(each.read_text() for each in Path("/proc/self/task").glob("*/children")).split()
    return sum(one.ru_utime + one.ru_stime for one in used) + sum(map(_ticks, children)) / _TICKS


def _ticks(process: str) -> int:
    return sum(map(int, Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15]))


def _ratios(job: str, ours: _Spent, limit: _Spent, reach: float) -> list[Ratio]:
    """By the clock the medians; of processors the means, since ticks are coarse."""
    clock = Ratio(job, statistics.median(ours.wall), statistics.median(limit.wall), reach)
    mine, theirs = statistics.mean(ours.processor), statistics.mean(limit.processor)
    return [clock, Ratio(job, mine, theirs, reach, note="processor time")]


async def _in_turn(rounds: int, acts: Sequence[Act], rest: Act) -> list[_Spent]:
    """Each act in turn; the first round, which fills caches, does not count. `rest` is not measured."""
    spent = [_Spent() for _ in acts]
    for number in range(rounds + 1):
        for act, taken in zip(acts, spent, strict=True):
            await (taken if number else _Spent()).take(act)
            await rest()
    return spent


async def _call(road: Road, op: str, target: str, scope: str, **parts: Any) -> Any:
    reply = await road.app.dispatcher.call_wire({"scope": scope, "op": op, "target": target, **parts}, LOCAL)
    if not reply.ok:
        raise RuntimeError(reply.envelope["error"]["message"])
    return reply.envelope["data"]


async def _command(road: Road) -> list[Ratio]:
    """`touch` on a view and without, in a small and in a large folder; the view is dropped outside the measured time."""
    given = {"input": {"command": ["touch", "made"]}}
    views: list[tuple[str, str]] = []

    def viewed(scope: str) -> Act:
        async def act() -> None:
            ran = await _call(road, "command.run", ".", scope, **given, options={"view": True})
            views.append((ran.view.view_id, scope))

        return act

    async def sandboxed() -> None:
        await _call(road, "command.run", ".", "small", **given, options={"undo": False})

    async def undoable() -> None:
        await _call(road, "command.run", ".", "small", **given)

    async def rest() -> None:
        (Path(road.app.config.scopes[0].roots[0]) / "made").unlink(missing_ok=True)
        while views:
            view, scope = views.pop()
            await _call(road, "view.drop", view, scope)

    acts = [viewed("small"), viewed("large"), undoable, sandboxed]
    mine, large, undo, theirs = await _in_turn(_COMMANDS, acts, rest)
    _progress(f"{_COMMANDS} commands ran four ways")
    return [
        *_ratios("command.run on a view, against the sandboxed command", mine, theirs, 1.3),
        *_ratios("command.run on a view of 100,000 files, against one of an empty folder", large, mine, 1.3),
        *_ratios("command.run that can be undone, against the sandboxed command", undo, theirs, 1.3),
    ]


async def _diff_and_keep(road: Road, large: Path) -> list[Ratio]:
    git = _repository(large)
    view_id = await _changed_view(road)
    # The same changes in a copy, for git and for cp.
    changed = large.parent / "changed"
    subprocess.run(["cp", "-a", str(large), str(changed)], check=True)
    subprocess.run([sys.executable, "-c", _CHANGE], cwd=changed, check=True)
    _progress("the view, the repository and the changed copy are made")

    async def shown() -> None:
        await _call(road, "view.show", view_id, "large", options={"maxChanges": 10_000, "maxDiffBytes": 0})

    async def status() -> None:
        subprocess.run([*git, f"--work-tree={changed}", "status", "--porcelain"], check=True, stdout=subprocess.DEVNULL)

    async def rest() -> None: ...

    diffs, statuses = await _in_turn(_DIFFS, [shown, status], rest)
    _progress(f"compared {_DIFFS} times")
    stored = _bytes(road.home / "views" / view_id)
    return [
        *_ratios("diff of 10,000 changed files in 100,000, against git status", diffs, statuses, 2),
        *await _keeping(road, view_id, changed),
        Ratio("bytes that a view of 100,000 files stores, against those changed", stored, _bytes(changed) / 10, 2, "B"),
    ]


async def _changed_view(road: Road) -> str:
    given = {"input": {"command": ["python3", "-c", _CHANGE]}, "options": {"view": True, "timeoutSeconds": 300}}
    view_id: str = (await _call(road, "command.run", ".", "large", **given)).view.view_id
    return view_id


async def _keeping(road: Road, view_id: str, changed: Path) -> list[Ratio]:
    """Keep against `cp -a` of a folder that has the changed files and no other."""
    names = [f"d{folder}/f{file}" for folder in range(_FOLDERS) for file in range(_CHANGED_IN_FOLDER)]
    only, target = changed.parent / "only", changed.parent / "target"
    only.mkdir()
    subprocess.run(["cp", "-a", "--parents", "-t", str(only), *names], cwd=changed, check=True)
    keeps, copies = _Spent(), _Spent()

    async def keep() -> None:
        await _call(road, "view.keep", view_id, "large")

    async def copy() -> None:
        subprocess.run(["cp", "-a", str(only), str(target)], check=True)

    for number in range(_KEEPS):
        await keeps.take(keep)
        await copies.take(copy)
        shutil.rmtree(target)
        await _call(road, "file.undo", ".", "large", input={"operationId": "last"})
        _progress(f"kept and undone {number + 1} of {_KEEPS} times")
        if number + 1 < _KEEPS:
            view_id = await _changed_view(road)
    return _ratios("keep of 10,000 files, against cp -a of them", keeps, copies, 2)


def _repository(large: Path) -> list[str]:
    """A repository beside the folder, with its files in the index."""
    place = large.parent / "repository"
    git = ["git", f"--git-dir={place}"]
    subprocess.run(["git", "init", "-q", "--bare", str(place)], check=True)
    subprocess.run([*git, "config", "core.bare", "false"], check=True)
    # Into one pack: a hundred thousand loose objects take longer to write and remove than all that is measured.
    subprocess.run([*git, "-c", "core.bigFileThreshold=1", f"--work-tree={large}", "add", "-A"], check=True)
    return git


def _bytes(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())
