"""Removes planted names: protected names that a command created in a folder that existed before.

No mount can close a name that does not exist without showing something there. So the folders are scanned again when
a command has ended, and several times a second while it runs.

The rule. A command is started after a scan. A protected name is planted when, for a command that still runs or has just
ended, that scan saw the folder in which the protected place begins, by its path or under another one, and not the name. In
a folder that appeared afterwards, such as a clone or a new project, everything stays.

The creator of a name cannot be determined: the owner has the same user id. What the owner creates while a command runs may
therefore be removed, too. Nothing is lost: it is moved to `refused` in the service's state, and the result reports it.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from computer_linker.computer.facets.processes import Confined
from computer_linker.model.ids import new_handle
from computer_linker.providers.sandbox.boundary import Closed, Folder
from computer_linker.providers.sandbox.judge import Entry, Parts, begins_at
from computer_linker.providers.sandbox.refused import Refused, put_link
from computer_linker.providers.sandbox.reopened import ClosedNames, Reopened
from computer_linker.providers.sandbox.steps import birth_clock_ns, made_at, reached
from computer_linker.providers.sandbox.tree import Identity, Tree
from computer_linker.system import os

log = logging.getLogger(__name__)

_EVERY_S = 0.25
_SHARE = 20
"""Without watches a scan stats every folder; it may take at most one twentieth of a processor."""
_ORPHANS_S = 0.3
"""How long orphaned processes of a command may live on where no process namespace ends them."""
_NAMED = 20


@dataclass(frozen=True, eq=False, slots=True)
class WatchedRoot:
    """A folder of a command."""

    folder: Folder
    tree: Tree
    closed: ClosedNames


@dataclass(eq=False, slots=True)
class Planting:
    """One running command, and the planted names removed so far."""

    roots: list[WatchedRoot]
    owner: "Plantings"
    leaves_orphans: bool = False
    """True where processes it started may outlive it for a moment."""
    command: str = field(default_factory=lambda: new_handle("cmd"))
    """The operation or process that `refused` names."""
    refused: list[str] = field(default_factory=list)
    """A sentence for each removed name, and for each closed one that was replaced."""
    program: Confined | None = None
    reopened: list[Reopened] = field(default_factory=list)
    """Names to close again."""
    is_over: bool = False
    started_ns: int = 0
    """By the clock of birth times."""

    async def settle(self) -> list[str]:
        """Scan once more after the command has ended. Returns a sentence for each removed name."""
        return await self.owner.settle(self)

    def end(self, then: Callable[[], None]) -> None:
        """Settle in the background."""
        self.owner.end(self, then)


class Plantings:
    """The running commands, by the folders they may write."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._refused = Refused(state / "refused")
        self._running: list[Planting] = []
        self._fds: dict[Tree, int] = {}
        """The folders, held open as long as a command runs in them."""
        self._due: dict[Tree, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_closed = False

    def begin(self, *, leaves_orphans: bool) -> Planting:
        """Start watching a command that is about to start; each of its folders follows with `watch`."""
        planting = Planting([], self, leaves_orphans)
        self._running.append(planting)
        self._tick_later()
        return planting

    def watch(self, planting: Planting, folder: Folder, tree: Tree, closed: list[Closed], *, may_plant: bool) -> None:
        """Watch a folder that has just been scanned. The caller still holds the tree's lock.

        Otherwise a scan that is under way could see what the command makes, and count it as what was there before.
        """
        planting.roots.append(WatchedRoot(folder, tree, ClosedNames.of(folder, closed)))
        if tree not in self._fds:
            self._fds[tree] = os.dup(folder.fd)
        if may_plant:
            tree.running[planting] = tree.number
        planting.started_ns = birth_clock_ns()

    async def settle(self, planting: Planting) -> list[str]:
        """Scan the folders of an ended command once more."""
        for root in planting.roots:
            await self._check(root)
        await self._close_again(planting)
        if planting.leaves_orphans and not planting.is_over:
            self._start(self._settle_later(planting))
        else:
            self._forget(planting)
        return planting.refused

    def end(self, planting: Planting, then: Callable[[], None]) -> None:
        """Settle without waiting: at once where nothing changed, else in a task."""
        trees = [root.tree for root in planting.roots]
        is_quiet = not planting.leaves_orphans and all(not tree.lock.locked() and _is_settled(tree) for tree in trees)
        if planting.is_over or self._is_closed or is_quiet:
            self._forget(planting)
            then()
            return

        async def finish() -> None:
            try:
                # No result reports them: the process ended by itself, or its caller already has the response.
                for sentence in await self.settle(planting):
                    log.warning("%s: %s", planting.command, sentence)
            finally:
                then()

        self._start(finish())

    async def aclose(self) -> None:
        """Scan a last time; the commands have ended."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        with anyio.move_on_after(10, shield=True):
            for planting in list(self._running):
                planting.leaves_orphans = False
                await self.settle(planting)
            while self._tasks:
                await asyncio.wait(self._tasks)
        for planting in list(self._running):
            self._forget(planting)

    async def _settle_later(self, planting: Planting) -> None:
        """Scan again once the orphans of a command have been ended."""
        before = len(planting.refused)
        await anyio.sleep(_ORPHANS_S)
        planting.leaves_orphans = False
        await self.settle(planting)
        for sentence in planting.refused[before:]:
            log.warning("%s: %s", planting.command, sentence)

    def _forget(self, planting: Planting) -> None:
        if planting.is_over:
            return
        planting.is_over = True
        with contextlib.suppress(ValueError):
            self._running.remove(planting)
        for root in planting.roots:
            root.tree.running.pop(planting, None)
            if root.tree in self._fds and not any(
                root.tree is other.tree for each in self._running for other in each.roots
            ):
                os.close(self._fds.pop(root.tree))
                self._due.pop(root.tree, None)
        if not self._running and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_EVERY_S, self._tick)

    def _tick(self) -> None:
        self._timer = None
        now = time.monotonic()
        for root in {root.tree: root for planting in self._running for root in planting.roots}.values():
            tree = root.tree
            if self._due.get(tree, 0.0) <= now and not tree.lock.locked() and not _is_settled(tree):
                self._due[tree] = now + max(_EVERY_S, tree.took_s * _SHARE)
                self._start(self._check(root))
        for planting in self._running:
            # Found by the scan for another command.
            if planting.reopened:
                self._start(self._close_again(planting))
        if self._running:
            self._tick_later()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a scan for planted names failed", exc_info=error)

    async def _check(self, root: WatchedRoot) -> None:
        """Scan the folder in a worker thread and remove what was planted."""
        async with root.tree.lock:
            held = self._fds.get(root.tree)
            if held is None or _is_settled(root.tree):
                return
            # The folder's descriptor is closed with its last command, while the thread may still run.
            fd = os.dup(held)
            try:
                await anyio.to_thread.run_sync(self.scan, root.folder, root.tree, fd)
            finally:
                os.close(fd)
        for planting in list(self._running):
            await self._close_again(planting)

    async def _close_again(self, planting: Planting) -> None:
        """Close the names that were replaced, and report them."""
        while planting.reopened:
            sentence = await planting.reopened.pop(0).closed(planting.program)
            if sentence:
                log.warning("%s: %s", planting.command, sentence)
                _report(planting, sentence)

    def scan(self, folder: Folder, tree: Tree, fd: int) -> None:
        """Scan the folder and remove what the commands that run in it planted. Blocking."""
        tree.scan(fd)
        fresh, tree.fresh = tree.fresh, []
        newest = None
        for parts, before in fresh:
            planters = _planters(tree, fd, parts, replaced=before is not None)
            if planters and not self._is_ours(folder, parts):
                newest = planters[0].command
                sentence = self._take(tree, fd, parts, before, newest)
                for planting in planters if sentence else ():
                    _report(planting, sentence)
        if newest is not None:
            self._refused.tidy(newest)
        for planting in tuple(self._running):
            for root in planting.roots:
                if root.tree is tree:
                    planting.reopened += root.closed.reopened(fd)

    def _take(self, tree: Tree, fd: int, parts: Parts, before: Entry | None, command: str) -> str:
        """Remove one planted name. Returns a sentence about it; empty when it is gone already."""
        shown, seen = "/".join(parts), tree.folders.get(parts[:-1])
        try:
            with reached(fd, parts[:-1]) as parent:
                about = os.fstat(parent)
                if seen is None or (about.st_dev, about.st_ino) != (seen.device, seen.inode):
                    # Another folder is there by now, which the next scan will classify.
                    return ""
                kept = self._refused.take(parent, parts, command)
                tree.has_lost(parts, before)
                if before is not None:
                    put_link(parent, parts[-1], before.target)
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except OSError as error:
            return f"{shown} is a protected name that was made meanwhile, and it could not be taken away: {error.strerror}."
        return f"{shown} is a protected name that was made meanwhile. It was taken away and is kept in {kept}."

    def _is_ours(self, folder: Folder, parts: Parts) -> bool:
        """True for the service's own files, where its state lies in the folder."""
        state = Path(os.path.realpath(self._state))
        return state.is_relative_to(folder.path) and Path(folder.path, *parts).is_relative_to(state)


def _is_settled(tree: Tree) -> bool:
    return not tree.fresh and tree.is_quiet()


def _planters(tree: Tree, fd: int, parts: Parts, *, replaced: bool) -> list[Planting]:
    """The running commands for which the name is planted, the oldest first."""
    place = tree.place(parts)
    begins = max(0, begins_at(place) - (len(place) - len(parts)))
    folder, name = tree.first_seen.get(parts[:begins]), tree.first_seen.get(parts)
    if folder is None or name is None:
        return []
    gone, back = tree.absent.get(parts, (0, 0))
    is_moved = _Moved(tree, fd, parts, begins)
    return [
        planting
        # A copy: commands end in the event loop while this thread looks.
        for planting, scan in tuple(tree.running.items())
        if isinstance(planting, Planting)
        and (
            (scan < name or gone <= scan < back or replaced)
            if folder <= scan
            else is_moved.folder_of(planting) and not is_moved.name_of(planting)
        )
    ]


class _Moved:
    """Determines whether a folder and the protected name in it existed under another path when a command started.

    The inode of a removed folder may be reused by a new one, so the birth time must be earlier, too.
    """

    def __init__(self, tree: Tree, fd: int, parts: Parts, begins: int) -> None:
        self._tree = tree
        self._fd = fd
        self._parts = parts
        self._begins = begins

    def folder_of(self, planting: Planting) -> bool:
        seen = self._tree.folders.get(self._parts[: self._begins])
        return seen is not None and bool(self._first_paths(planting, (seen.device, seen.inode), self._begins))

    def name_of(self, planting: Planting) -> bool:
        """True for a protected name that was moved together with its folder."""
        holder = self._tree.folders.get(self._parts[:-1])
        found = () if holder is None else holder.found
        entry = next((entry for entry in found if entry.name == self._parts[-1]), None)
        if entry is None:
            return True
        tail = self._parts[self._begins :]
        paths = self._first_paths(planting, (entry.device, entry.inode), len(self._parts))
        return any(path[-len(tail) :] == tail for path in paths)

    def _first_paths(self, planting: Planting, identity: Identity, size: int) -> list[Parts]:
        """Its paths in the command's roots when the command started."""
        known = [
            first
            for root in planting.roots
            if (first := root.tree.known.get(identity)) is not None
            and first.scan <= root.tree.running.get(planting, -1)
        ]
        born_ns = made_at(self._fd, self._parts[:size]) if known else None
        if born_ns is not None and born_ns >= planting.started_ns:
            # Birth times are coarse, so in the tick of the start only the change time that the scan saw can tell.
            known = [first for first in known if born_ns <= first.changed_ns]
        return [first.path for first in known]


def _report(planting: Planting, sentence: str) -> None:
    if len(planting.refused) < _NAMED:
        planting.refused.append(sentence)
    elif len(planting.refused) == _NAMED:
        planting.refused.append(
            "More protected names were made or replaced meanwhile; what was taken away is kept in the same place."
        )
