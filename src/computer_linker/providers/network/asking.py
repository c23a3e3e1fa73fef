"""Hosts that a scope's list does not have, put to the owner: one question for each, however many connections want it."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Self

from computer_linker.approvals.approvals import Approvals
from computer_linker.errors import ConfirmRequired
from computer_linker.model.envelope import Call
from computer_linker.model.ids import new_handle
from computer_linker.model.network import ASK, Entry, parse_entry
from computer_linker.model.principal import Principal
from computer_linker.model.times import shown_s
from computer_linker.providers.network.reach import entry_for
from computer_linker.services import Services

MINUTES = 15
"""How long a host stays open after a yes."""
_NO_S = 300.0
"""How long a no holds, so that a program that tries again and again asks once."""
_MAX_WAITING = 8
"""Hosts of one scope that wait for an answer; further ones are refused at once."""
_MAX_KEPT = 512
Key = tuple[str, str]
"""A scope, and the entry of its list that would allow the host."""


class Granted(NamedTuple):
    """A host that is open to a scope for a while: for the folders that the scope had when the owner allowed it."""

    id: str
    scope: str
    entry: str
    roots: tuple[str, ...]
    until: float

    @property
    def expires_at(self) -> str:
        return shown_s(time.time() + self.until - time.monotonic())


class Asking:
    """Asks, and keeps what was allowed until its time is over. Nothing of it survives the service."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._granted: dict[Key, Granted] = {}
        self._refused: dict[Key, float] = {}
        self._waiting: dict[Key, asyncio.Task[bool]] = {}

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services)

    def granted(self, scope: str) -> tuple[Entry, ...]:
        """What the owner allowed a scope that still asks, at this moment."""
        return tuple(parse_entry(one.entry) for one in self.open_hosts() if one.scope == scope)

    def open_hosts(self) -> list[Granted]:
        """Every host that is open now. One of a scope that has other folders by now, or is gone, is not."""
        now = time.monotonic()
        granted = list(self._granted.values())
        return [one for one in granted if one.until > now and one.roots == self._roots(one.scope)]

    def grant(self, scope: str, host: str, port: int, minutes: int) -> None:
        """Let a scope reach a host for some minutes."""
        key = scope, entry_for(host, port)
        until = time.monotonic() + 60 * minutes
        self._granted = {(one.scope, one.entry): one for one in self.open_hosts()}
        self._granted[key] = Granted(new_handle("host"), *key, self._roots(scope), until)
        self._refused.pop(key, None)

    def end(self, is_meant: Callable[[Granted], bool]) -> int:
        """Take hosts back; return how many were open. Connections that are open go on, as with the list."""
        ended = [one for one in self.open_hosts() if is_meant(one)]
        for one in ended:
            del self._granted[one.scope, one.entry]
        return len(ended)

    def _roots(self, scope: str) -> tuple[str, ...]:
        found = self._services.config.scope(scope)
        return () if found is None else tuple(found.roots)

    async def ask(self, scope: str, principal: Principal, host: str, port: int) -> bool:
        """Whether the owner lets a scope reach this host now. A no, and no answer in time, is a no."""
        key = scope, entry_for(host, port)
        found = self._services.config.scope(scope)
        asks = found is not None and isinstance(found.policy.network, list) and ASK in found.policy.network
        if not asks or self._refused.get(key, 0.0) > time.monotonic():
            return False
        task = self._waiting.get(key)
        if task is None:
            if sum(each[0] == scope for each in self._waiting) >= _MAX_WAITING:
                return False
            task = self._waiting[key] = asyncio.ensure_future(self._answer(key, principal))
            task.add_done_callback(lambda _task: self._waiting.pop(key))
        # One connection that ends must not end the question of the others.
        return await asyncio.shield(task)

    async def aclose(self) -> None:
        """End what waits."""
        for task in self._waiting.values():
            task.cancel()

    async def _answer(self, key: Key, principal: Principal) -> bool:
        scope, entry = key
        call = Call(scope, "command.reach", input={"host": entry, "minutes": MINUTES})
        is_allowed, asked = await self._called(call, principal)
        if asked is not None and await self._approved(asked):
            is_allowed, _ = await self._called(call, principal)
        if not is_allowed:
            now = time.monotonic()
            kept = {key: until for key, until in self._refused.items() if until > now}
            self._refused = {key: now + _NO_S, **dict(list(kept.items())[: _MAX_KEPT - 1])}
        return is_allowed

    async def _approved(self, asked: str) -> bool:
        """Wait for the answer to a request that no approver was there for: it is in the owner's list for a while."""
        approvals = self._services.use(Approvals)
        request = approvals.ledger.find(asked)
        while request is not None and request.state == "waiting" and request.seconds_left:
            with suppress(TimeoutError):
                # Not wait_for: it begins to wait a turn of the loop later, and an answer in between would be missed.
                async with asyncio.timeout(request.seconds_left):
                    await approvals.changed()
        return request is not None and request.state == "approved"

    async def _called(self, call: Call, principal: Principal) -> tuple[bool, str | None]:
        """Whether the call was allowed; else the request that waits for the owner, where one does."""
        assert self._services.call is not None, "a service has a dispatcher"
        envelope = await self._services.call(call, principal)
        if envelope["ok"]:
            return True, None
        error = envelope["error"]
        waits = error["code"] == ConfirmRequired.code
        return False, error.get("details", {}).get("approvalId") if waits else None
