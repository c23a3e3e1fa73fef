"""Stops processes of principals whose access was revoked, and audits it."""

import asyncio
import logging
from dataclasses import replace
from typing import Any

from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.model.ids import new_handle
from computer_linker.model.principal import Principal, Proof
from computer_linker.policy.engine import ProcessRights

log = logging.getLogger(__name__)
_CLOSE_S = 5.0


class Revocation:
    """Ends processes, agents and browsers of a principal that was unpaired or whose last session was ended."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._tasks: set[asyncio.Task[Any]] = set()

    def begin(self, principal: str) -> None:
        """Do it in the background; only shutdown waits for it."""
        self._keep(asyncio.ensure_future(self.end(principal, "oauth")))

    def _keep(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def taken(self, rights: ProcessRights) -> None:
        """Audit that a process was ended because the owner took the rights it ran with."""
        who = replace(rights.principal, session="ended")
        notes = self._dispatcher.note("principal.end", who, {"ended": 1, "scope": rights.scope_id})
        self._keep(asyncio.ensure_future(notes))

    async def end(self, principal: str, proof: Proof) -> int:
        """End everything of this principal; return how many things ran."""
        ended = await self._dispatcher.services.end_of(principal)
        if ended:
            who = Principal(principal, proof, session="ended", connection=new_handle("conn"), grants=frozenset())
            await self._dispatcher.note("principal.end", who, {"ended": ended})
        return ended

    async def aclose(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_S)

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("what an ended session had begun could not be ended", exc_info=error)
