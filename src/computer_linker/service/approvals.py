"""A person at a terminal: what waits for their answer, and their presence, which makes calls wait for it."""

import asyncio
import contextlib
from typing import Any

import anyio
from anyio import to_thread

from computer_linker.errors import InvalidRequest, NotFound
from computer_linker.policy.confirm import Asked
from computer_linker.providers.approvals import Answer, Approvals, shown
from computer_linker.service.app import App
from computer_linker.service.approval_pictures import Pictures
from computer_linker.service.notice import NoticeApprover

_WAIT_S = 20.0
_GRACE_S = 3.0
_ANSWERS: dict[str, Answer] = {"allow": "yes", "allow_for_session": "yes_for_session", "deny": "no"}


class ApprovalDesk:
    """Answers the `approvals.*` control actions."""

    def __init__(self, app: App) -> None:
        self._approvals = app.services.use(Approvals)
        self._approvals.offer(NoticeApprover(app).find)
        self._pictures, self._one = Pictures(app.home / "approvals"), anyio.CapacityLimiter(1)
        self._presence: asyncio.Task[None] | None = None
        self._leases: dict[object, float] = {}
        """Until when each terminal counts as being there."""
        self._left = asyncio.Event()

    async def control(self, action: str, request: dict[str, Any]) -> dict[str, Any]:
        """One action of the command line."""
        match action:
            case "approvals.list":
                return await self._list()
            case "approvals.wait":
                return await self._wait(request)
            case "approvals.here":
                self._stay("here", _GRACE_S)
                return {"ok": True}
            case "approvals.answer":
                return await self._answer(str(request.get("id")), str(request.get("answer")))
            case "approvals.revoke":
                return {"ok": True, "revoked": self._approvals.ledger.revoke_standing()}
            case _:
                raise InvalidRequest("There is no such approvals action.")

    async def aclose(self) -> None:
        """The terminal is gone with the service, and so is what it was shown."""
        self._pictures.of([])
        if self._presence is not None:
            self._presence.cancel()
            await asyncio.wait([self._presence], timeout=5)

    async def _list(self) -> dict[str, Any]:
        waiting = self._approvals.waiting()
        places = await to_thread.run_sync(self._pictures.of, waiting, limiter=self._one)
        return {"ok": True, "waiting": [{**shown(asked), "picture": places.get(asked.id)} for asked in waiting]}

    async def _wait(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return when what waits is no longer what the terminal shows, or after a while; meanwhile calls wait for it."""
        known = set(request.get("known") or [])
        lease = object()
        self._stay(lease, _WAIT_S + _GRACE_S)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_WAIT_S):
                    while {asked.id for asked in self._approvals.waiting()} == known:
                        await self._approvals.changed()
            self._stay("here", _GRACE_S)
        finally:
            # Also when the terminal was closed: nobody waits for a person who has gone.
            del self._leases[lease]
            self._left.set()
        return await self._list()

    def _stay(self, lease: object, seconds: float) -> None:
        """A terminal is there, and will be for so long."""
        loop = asyncio.get_running_loop()
        self._leases[lease] = loop.time() + seconds
        if self._presence is None or self._presence.done():
            self._presence = loop.create_task(self._be_there())

    async def _answer(self, asked_id: str, answer: str) -> dict[str, Any]:
        if answer not in _ANSWERS:
            raise InvalidRequest(f"The answer is one of {', '.join(_ANSWERS)}.")
        asked = self._approvals.answer(asked_id, _ANSWERS[answer])
        if asked is None:
            raise NotFound("Nothing waits under that id any more: it was answered, withdrawn, or its time ran out.")
        await self._list()
        return {"ok": True, "id": asked.id, "op": asked.op, "scope": asked.scope}

    async def _be_there(self) -> None:
        """Count as an approver until every terminal has gone; calls that still wait for one are then told so."""
        gone = anyio.Event()

        async def person(asked: Asked) -> Answer | None:
            # The answer comes by `approvals.answer`; this only keeps the call waiting for it.
            await gone.wait()
            return None

        loop = asyncio.get_running_loop()
        async with self._approvals.attached("terminal", person):
            while (left := max(self._leases.values(), default=0.0) - loop.time()) > 0:
                self._left.clear()
                with anyio.move_on_after(left):
                    await self._left.wait()
        gone.set()
