"""Planted names: a protected name that a command made in a folder that was there before is taken away again.

No mount can close a name that does not exist without showing something there. So the folders are looked at again when
a command has ended, and several times a second while it runs.

The rule. A command is started after a look. A protected name is planted when, for a command that still runs or has just
ended, that look saw the folder (by its path) in which the protected place begins, and not the name. In a folder that
appeared afterwards, such as a clone or a new project, everything stays.

Who made a name cannot be known: the owner has the same user id. What the owner makes while a command runs may therefore be
taken, too. Nothing is lost: it is moved to `refused` in the service's state, and the result says so.
"""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from computer_linker.model.ids import new_handle
from computer_linker.providers.sandbox.boundary import Folder
from computer_linker.providers.sandbox.judge import Entry, Parts, begins_at
from computer_linker.providers.sandbox.refused import Refused, put_link
from computer_linker.providers.sandbox.steps import open_below
from computer_linker.providers.sandbox.tree import Tree

log = logging.getLogger(__name__)

_EVERY_S = 0.25
_SHARE = 20
"""Without watches a look asks every folder; it may take at most one twentieth of a processor."""
_ORPHANS_S = 0.3
"""How long what a command left behind may live on where no process namespace ends it."""
_NAMED = 20


@dataclass(frozen=True, eq=False, slots=True)
class Ground:
    """A folder that a command may write."""

    folder: Folder
    tree: Tree


@dataclass(eq=False, slots=True)
class Planting:
    """One command that runs, and what was taken away that it planted."""

    grounds: list[Ground]
    owner: "Plantings"
    leaves_orphans: bool = False
    """True where something it started may outlive it for a moment."""
    command: str = field(default_factory=lambda: new_handle("cmd"))
    """The operation or process that `refused` names."""
    refused: list[str] = field(default_factory=list)
    """A sentence for each name that was taken away."""
    is_over: bool = False

    async def settle(self) -> list[str]:
        """The command has ended: look once more. Returns a sentence for each name that was taken away."""
        return await self.owner.settle(self)

    def end(self, then: Callable[[], None]) -> None:
        """The same in the background."""
        self.owner.end(self, then)


class Plantings:
    """The commands that run now, by the folders they may write."""

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

    def begin(self, grounds: list[tuple[Folder, Tree]], *, leaves_orphans: bool) -> Planting:
        """Watch over a command that is about to start; its folders have just been looked at."""
        planting = Planting([], self, leaves_orphans)
        for folder, tree in grounds:
            planting.grounds.append(Ground(folder, tree))
            if tree not in self._fds:
                self._fds[tree] = os.dup(folder.fd)
            tree.running[planting] = tree.number
        self._running.append(planting)
        self._tick_later()
        return planting

    async def settle(self, planting: Planting) -> list[str]:
        """Look once more at the folders of a command that has ended."""
        for ground in planting.grounds:
            await self._check(ground)
        if planting.leaves_orphans and not planting.is_over:
            self._start(self._settle_later(planting))
        else:
            self._forget(planting)
        return planting.refused

    def end(self, planting: Planting, then: Callable[[], None]) -> None:
        """The same without waiting for it: at once where nothing changed, else in a task."""
        trees = [ground.tree for ground in planting.grounds]
        is_quiet = not planting.leaves_orphans and all(not tree.lock.locked() and _is_settled(tree) for tree in trees)
        if planting.is_over or self._is_closed or is_quiet:
            self._forget(planting)
            then()
            return

        async def finish() -> None:
            try:
                await self.settle(planting)
            finally:
                then()

        self._start(finish())

    async def aclose(self) -> None:
        """Look a last time; the commands have ended."""
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
        """What a command left behind has been ended by now: look again."""
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
        for ground in planting.grounds:
            ground.tree.running.pop(planting, None)
            if not ground.tree.running:
                os.close(self._fds.pop(ground.tree))
                self._due.pop(ground.tree, None)
        if not self._running and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_EVERY_S, self._tick)

    def _tick(self) -> None:
        self._timer = None
        now = time.monotonic()
        for ground in {ground.tree: ground for planting in self._running for ground in planting.grounds}.values():
            tree = ground.tree
            if self._due.get(tree, 0.0) <= now and not tree.lock.locked() and not _is_settled(tree):
                self._due[tree] = now + max(_EVERY_S, tree.took_s * _SHARE)
                self._start(self._check(ground))
        if self._running:
            self._tick_later()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a look for planted names failed", exc_info=error)

    async def _check(self, ground: Ground) -> None:
        """Look at the folder again, away from the event loop, and take away what was planted."""
        async with ground.tree.lock:
            held = self._fds.get(ground.tree)
            if held is None or _is_settled(ground.tree):
                return
            # The folder is closed with its last command, and the thread may still be at work.
            fd = os.dup(held)
            try:
                await anyio.to_thread.run_sync(self.look, ground.folder, ground.tree, fd)
            finally:
                os.close(fd)

    def look(self, folder: Folder, tree: Tree, fd: int) -> None:
        """Look at the folder, and take away what the commands that run in it planted. In a worker thread."""
        tree.look(fd)
        fresh, tree.fresh = tree.fresh, []
        newest = None
        for parts, before in fresh:
            planters = _planters(tree, parts, replaced=before is not None)
            if planters and not self._is_ours(folder, parts):
                newest = planters[0].command
                sentence = self._take(tree, fd, parts, before, newest)
                for planting in planters if sentence else ():
                    _tell(planting, sentence)
        if newest is not None:
            self._refused.tidy(newest)

    def _take(self, tree: Tree, fd: int, parts: Parts, before: Entry | None, command: str) -> str:
        """Take one planted name away. Returns what to say about it; nothing when it is gone already."""
        shown, seen = "/".join(parts), tree.folders.get(parts[:-1])
        try:
            parent = open_below(fd, parts[:-1])
        except OSError:
            return ""
        try:
            about = os.fstat(parent)
            if seen is None or (about.st_dev, about.st_ino) != (seen.device, seen.inode):
                # Another folder stands there by now, which the next look will judge.
                return ""
            kept = self._refused.take(parent, parts, command)
            tree.has_lost(parts)
            if before is not None:
                put_link(parent, parts[-1], before.target)
        except FileNotFoundError:
            return ""
        except OSError as error:
            return f"{shown} is a protected name that was made meanwhile, and it could not be taken away: {error.strerror}."
        finally:
            os.close(parent)
        return f"{shown} is a protected name that was made meanwhile. It was taken away and is kept in {kept}."

    def _is_ours(self, folder: Folder, parts: Parts) -> bool:
        """True for what the service itself makes, where its state lies in the folder."""
        state = Path(os.path.realpath(self._state))
        return state.is_relative_to(folder.path) and Path(folder.path, *parts).is_relative_to(state)


def _is_settled(tree: Tree) -> bool:
    return not tree.fresh and tree.is_quiet()


def _planters(tree: Tree, parts: Parts, *, replaced: bool) -> list[Planting]:
    """The running commands for which the name is planted, the oldest first."""
    place = tree.place(parts)
    begins = max(0, begins_at(place) - (len(place) - len(parts)))
    folder, name = tree.first_seen.get(parts[:begins]), tree.first_seen.get(parts)
    if folder is None or name is None:
        return []
    gone, back = tree.absent.get(parts, (0, 0))
    return [
        planting
        for planting, look in tree.running.items()
        if isinstance(planting, Planting) and folder <= look and (look < name or gone <= look < back or replaced)
    ]


def _tell(planting: Planting, sentence: str) -> None:
    if len(planting.refused) < _NAMED:
        planting.refused.append(sentence)
    elif len(planting.refused) == _NAMED:
        planting.refused.append(
            "More protected names were made meanwhile and taken away; they are kept in the same place."
        )
