"""Undo of a command that changed the folder itself: its before-image, and the record that file.undo uses."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator

import anyio
from anyio.to_thread import run_sync

from computer_linker.computer.facets.files import Inverse
from computer_linker.errors import LinkError
from computer_linker.model.paths import RootedPath
from computer_linker.providers.before.images import LARGE, SMALL, BeforeImages, Image, TooLarge
from computer_linker.providers.before.undo import CommandChanges, NotUndoable, steps_of
from computer_linker.providers.views.reading import roots_of
from computer_linker.registry import Context
from computer_linker.undo.journal import Entry, UndoJournal

_FAILURES = (TooLarge, OSError, LinkError)


class CommandUndo:
    """The undo of one command: takes the image while the program waits at its start gate, and compares when it has ended."""

    def __init__(self, ctx: Context, wanted: bool | None) -> None:
        self._ctx = ctx
        self._wanted = wanted
        self._bounds = LARGE if wanted else SMALL
        self._images: list[Image] = []
        self._why_none = ""
        self._recording: asyncio.Task[None] | None = None

    async def before_start(self) -> None:
        """Take the image and await the intent."""
        if self._wanted is not False:
            self._images = await run_sync(self._take)
            if self._wanted and not self._images:
                self._ctx.warn(
                    f"undoable: false. What a command may change could not be copied before: {self._why_none}."
                )
        await self._ctx.durable_intent()

    def ended(self) -> None:
        """Record the changes of a program that no call waits for."""
        self._recording = asyncio.create_task(self._record_and_release())

    async def _record_and_release(self) -> None:
        try:
            await self.recorded()
        finally:
            await self.release()

    async def recorded(self) -> bool | None:
        """Record the changes; None when there are none, or none were to be recorded. False when they cannot be taken back."""
        if not self._images:
            return None if self._wanted is False else False
        if self._ctx.use(BeforeImages).is_shared(self._images):
            self._ctx.warn("Another command ran in this folder meanwhile: undo takes back what either of them changed.")
        try:
            journal = self._ctx.use(UndoJournal)
            entry = journal.begin(self._ctx.operation_id, self._ctx.scope.id, self._ctx.principal.id, self._ctx.op)
            steps = await run_sync(self._steps, entry, journal.kept.drop)
            if steps:
                entry.commit(steps)
            return True if steps else None
        except (NotUndoable, *_FAILURES) as error:
            self._ctx.warn(f"undoable: false. What this command changed cannot be taken back: {_reason(error)}.")
            return False

    async def release(self) -> None:
        if self._images:
            with anyio.CancelScope(shield=True):
                await run_sync(self._ctx.use(BeforeImages).release, self._images)

    def _take(self) -> list[Image]:
        try:
            with self._held() as held:
                return self._ctx.use(BeforeImages).take(held, self._bounds)
        except _FAILURES as error:
            # Without an image the command runs all the same, and cannot be taken back.
            self._why_none = _reason(error)
            return []

    def _steps(self, entry: Entry, drop: Callable[[list[str]], None]) -> list[Inverse]:
        """How to take back what changed; empty when nothing did."""
        ctx = self._ctx
        with self._held() as held:
            images = ctx.use(BeforeImages)
            scans = [images.now(root, fd, LARGE).entries for root, fd in held]
        changes = [CommandChanges(image, now) for image, now in zip(self._images, scans, strict=True)]
        ctx.note(changedNames=sum(each.count for each in changes))
        return steps_of(changes, entry, drop)

    @contextlib.contextmanager
    def _held(self) -> Iterator[list[tuple[RootedPath, int]]]:
        with contextlib.ExitStack() as opened:
            held = []
            for root in roots_of(self._ctx):
                fd = self._ctx.computer.files.open_folder(root)
                opened.callback(os.close, fd)
                held.append((root, fd))
            yield held


def _reason(error: Exception) -> str:
    """Why, without a path of this machine."""
    match error:
        case TooLarge():
            return "the scope's folders are too large"
        case LinkError():
            return error.message.rstrip(".")
        case OSError():
            return error.strerror or "the system refused"
    return str(error)
