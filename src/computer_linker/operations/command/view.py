"""Runs a command in a view: the option, and what the view holds afterwards."""

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from anyio.to_thread import run_sync
from pydantic import Field

from computer_linker.audit.command_line import command_preview
from computer_linker.computer.facets.processes import Child
from computer_linker.errors import LinkError
from computer_linker.model.paths import RootedPath
from computer_linker.providers.own_folders import disk_use
from computer_linker.providers.sandbox.boundary import Store
from computer_linker.providers.views.changes import ViewChange
from computer_linker.providers.views.copying import FolderCopy
from computer_linker.providers.views.reading import ViewReader, roots_of, skips_of
from computer_linker.providers.views.store import NETWORKS, Network, NewView, View, Views
from computer_linker.registry import Context, Model

OF_SESSION = "session"
OF_BATCH = "batch"
"""Stands for the view that the steps of one batch share: the same in each request, as a person's yes is held to it."""
BATCH = "batch-"
"""Begins the name of that view."""
_LOOK_S = 1.0
ViewOption = Annotated[
    bool | str,
    Field(
        description="Run on a view of the folder, which stays as it is until view.keep: true for a new view, the id of one, or "
        "`session` for the one view of this session."
    ),
]


class ViewSummary(Model):
    """How many names a view would change."""

    view_id: str
    added: int
    changed: int
    removed: int


class CommandView:
    """The view of one command, created only when the command is about to start."""

    def __init__(self, ctx: Context, wanted: bool | str, command: str | Sequence[str]) -> None:
        self._ctx = ctx
        self._wanted = wanted
        self._command = command
        self._views = ctx.use(Views)
        self._view: View | None = None
        self._watching: asyncio.Task[None] | None = None
        self._exceeded = False
        self._is_empty = False
        self.is_left_alone = False
        """No call waits for the program's end: the view is compared then, and an empty one dropped."""
        self._settling: asyncio.Task[None] | None = None

    @property
    def id(self) -> str | None:
        return None if self._view is None else self._view.id

    async def hold(self) -> tuple[Store, ...]:
        """Open the folders that take the changes."""
        views, found = self._views, await run_sync(self._found)
        views.begin(found, command_preview(self._command))
        try:
            view, held = await run_sync(views.started, found, self._ctx.operation_id, self._network)
        except BaseException:
            views.end(found)
            raise
        self._view = view
        self._ctx.note(viewId=view.id)
        return tuple(Store(fd, is_copy=view.kind == "copy") for fd in held)

    def _found(self) -> View:
        """The view that was asked for, or a new one."""
        if isinstance(self._wanted, str) and self._shared is None:
            return self._views.find(self._wanted, self._ctx.scope.id, self._ctx.principal)
        return self._created()

    @property
    def _shared(self) -> str | None:
        """The session or batch whose calls share the view."""
        wanted = self._wanted
        if wanted == OF_SESSION:
            return self._ctx.principal.session
        if wanted == OF_BATCH and self._ctx.parent is not None:
            return f"{BATCH}{self._ctx.parent}"
        return wanted if isinstance(wanted, str) and wanted.startswith(BATCH) else None

    @property
    def _network(self) -> Network:
        return NETWORKS[self._ctx.scope.policy.network_width]

    def _created(self) -> View:
        ctx, views = self._ctx, self._views
        new = NewView(
            ctx.scope.id,
            ctx.principal,
            ctx.scope.roots,
            ctx.op,
            command_preview(self._command),
            self._shared or "",
            ctx.operation_id,
            self._network,
        )
        return views.create(new, None if views.has_overlay(ctx.scope.roots) else self._fill)

    def _fill(self, place: Path) -> None:
        """Copy the scope's folders into a new view."""
        state = self._ctx.services.home.stat()
        for index, root in enumerate(roots_of(self._ctx)):
            copy = FolderCopy(skips_of(root), self._views.max_bytes, (state.st_dev, state.st_ino))
            held = self._ctx.computer.files.open_folder(root)
            try:
                copy.copy(held, place / str(index) / "upper")
            finally:
                os.close(held)

    def guard(self, child: Child) -> None:
        """End the program when the view gets too large. The kernel has no quota for a folder, so its size is looked at."""
        self._watching = asyncio.create_task(self._watch(child))

    async def _watch(self, child: Child) -> None:
        assert self._view is not None
        place, loop = self._views.folder / self._view.id, asyncio.get_running_loop()
        pause = _LOOK_S
        while True:
            await asyncio.sleep(pause)
            started = loop.time()
            if await run_sync(disk_use, place) > self._views.max_bytes:
                self._exceeded = True
                child.kill()
                return
            # A look at many files takes a tenth of the time at most.
            pause = max(_LOOK_S, 10 * (loop.time() - started))

    def ended(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        if self._view is not None:
            self._views.end(self._view)
            if self.is_left_alone:
                self._settling = asyncio.create_task(self._settle())

    async def _settle(self) -> None:
        await self.changes()
        await self.drop_empty()

    async def drop_empty(self) -> bool:
        """Drop a view that the scope's policy made and that holds no change; return whether it is gone."""
        if self._view is None or self._wanted or not self._is_empty or not await run_sync(self._dropped, self._view):
            return False
        self._view = None
        return True

    async def changes(self) -> list[tuple[RootedPath, ViewChange]]:
        """What the view would change now that its program has ended; what the changed texts were is stored for a merge."""
        if self._view is None:
            return []
        if self._exceeded:
            self._ctx.warn(f"The program was ended: its view holds more than {self._views.max_bytes >> 20} MB.")
        try:
            found = await run_sync(self._compared, self._view)
            self._is_empty = not found
            return found
        except LinkError as error:
            self._ctx.warn(f"The view could not be compared: {error.message}")
        except OSError as error:
            self._ctx.warn(f"The view could not be compared: {error.strerror or 'the system refused'}.")
        return []

    def _compared(self, view: View) -> list[tuple[RootedPath, ViewChange]]:
        reader, changed = ViewReader.of(self._ctx, view), None
        try:
            found = reader.changes()
            changed = len(found)
            reader.remember(found)
            return found
        finally:
            self._views.measure(view, changed)

    async def summary(self) -> ViewSummary | None:
        """How many names the view would change; None when the scope's policy made it and nothing was changed, so it is gone."""
        if self._view is None:
            return None
        view, found = self._view, await self.changes()
        return None if await self.drop_empty() else summary_of(view.id, found)

    def _dropped(self, view: View) -> bool:
        if self._views.is_running(view.id):
            return False
        with self._views.busy(view):
            return self._views.drop(view)


def summary_of(view_id: str, changes: Sequence[tuple[RootedPath, ViewChange]]) -> ViewSummary:
    found = Counter(change.action for _, change in changes)
    return ViewSummary(
        view_id=view_id,
        added=found["added"],
        changed=found["changed"] + found["renamed"],
        removed=found["removed"],
    )


def view_for(ctx: Context, wanted: bool | str, command: str | Sequence[str]) -> CommandView | None:
    """The view to run in; None where the caller wants none and the scope's policy asks for none."""
    if not wanted and ctx.scope.policy.outcome == "direct":
        return None
    return CommandView(ctx, wanted, command)
