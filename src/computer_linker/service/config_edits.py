"""Records in the history what a person, or any other program, changed in config.json by hand."""

import asyncio
import logging
from typing import Self

from anyio import to_thread

from computer_linker.config.edits import Edit, find_edit
from computer_linker.config.load import CONFIG_NAME, stamp_of
from computer_linker.errors import ConfigInvalid, LinkError, Problem
from computer_linker.model.principal import Principal
from computer_linker.service.changing_config import keep_change
from computer_linker.service.settings import check
from computer_linker.services import Services

log = logging.getLogger(__name__)
EVENT = "config.edit"
_EVERY_S = 1.0
_BY_HAND = Principal("by hand", "local_user", "by-hand", "by-hand")
"""Who edits a file is not known; the file is the owner's alone."""


class ConfigEdits:
    """Looks at the file when its stamp has changed: each second, and before each act of the owner."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._stamp: tuple[int, ...] | None = None
        self._looking = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services)

    async def watch(self) -> None:
        """Look now, and again and again until the service ends."""
        await self.look()
        self._task = asyncio.create_task(self._watch())

    async def look(self) -> None:
        """Record what was changed by hand since the last look, as one event that can be undone."""
        async with self._looking:
            try:
                stamp = stamp_of((self._services.home / CONFIG_NAME).lstat())
            except OSError:
                stamp = ()
            before, self._stamp = self._stamp, stamp
            if stamp == before or (before is None and not stamp):
                return
            try:
                found = await to_thread.run_sync(self._found)
                if found is not None:
                    await self._record(found)
            except LinkError as error:
                log.error("an edit of config.json is not in the history, or cannot be undone: %s", error.message)

    def _found(self) -> Edit | None:
        try:
            return find_edit(self._services.home, check)
        except ConfigInvalid as error:
            # There is no file, or one that others could have written: every call is refused for this reason.
            return Edit([], ConfigInvalid.of([Problem((), error.message, "file")], error.hint))

    async def _record(self, found: Edit) -> None:
        facts = {"changed": "; ".join(found.lines) or None}
        made = await self._services.note(EVENT, _BY_HAND, facts, error=found.refusal)
        if found.before is not None and found.after is not None:
            await to_thread.run_sync(keep_change, self._services.home, made, found.before, found.after)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.look()

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
