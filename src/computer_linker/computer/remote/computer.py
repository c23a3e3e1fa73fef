"""RemoteComputer: a machine at the other end of a link, with the same facets as the local one."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Self

from computer_linker.computer.base import Computer
from computer_linker.computer.manifest import FACETS, Absent, FacetName, FacetState, Manifest
from computer_linker.computer.remote.files import RemoteFiles
from computer_linker.computer.remote.link import Forwarded, Link, RemoteKeyboard
from computer_linker.computer.remote.processes import RemoteProcesses
from computer_linker.computer.subscription import Subscription
from computer_linker.errors import OsPermissionRequired, UnsupportedPlatform

_MAX_PENDING = 10_000


class RemoteAccessibility(Forwarded):
    """Forwards every call; changes arrive as a stream while there is a listener."""

    @asynccontextmanager
    async def changes(self, kinds: Sequence[str] = ()) -> AsyncIterator[Subscription]:
        """Subscribe to change events there until the context exits."""
        subscription = Subscription(limit=_MAX_PENDING)
        method = self._methods["changes"]

        async def listen() -> None:
            items = self._link.stream(self._scope(), method.name, {"kinds": list(kinds)})
            async for item in items:
                subscription.put(method.from_answer(item, []))

        listening = asyncio.ensure_future(listen())
        try:
            yield subscription
        finally:
            listening.cancel()
            with suppress(asyncio.CancelledError):
                await listening


_STARTS = frozenset({"command:run", "process:manage"})


class RemoteComputer(Computer):
    """Forwards every facet call over `link`. Which scope of that machine a call belongs to is chosen once, here."""

    def __init__(self, link: Link, scope: str = "") -> None:
        super().__init__()
        self._link = link
        self._scope = scope
        kinds: dict[str, type[Forwarded]] = {"keyboard": RemoteKeyboard, "accessibility": RemoteAccessibility}
        for facet in FACETS:
            if facet == "files":
                self._put(facet, RemoteFiles(link))
            elif facet == "processes":
                self._put(facet, RemoteProcesses(link, self._process_scope))
            else:
                self._put(facet, kinds.get(facet, Forwarded)(facet, link, self._desktop_scope))

    @classmethod
    def of(cls, link: Link, scope: str = "") -> Self:
        """A computer on a link that is open: its offer is known already."""
        return cls(link, scope)

    def capabilities(self) -> Manifest:
        """The manifest that machine sent when the link opened; no round trip. `backend` names the provider there."""
        offered = self._link.offer.facets
        states: dict[str, FacetState] = {
            facet: offered.get(facet) or FacetState(state="missing", reason="It says nothing of it.")
            for facet in FACETS
        }
        return Manifest(facets=states)

    def _put(self, facet: FacetName, part: Any) -> None:
        """Set a facet, or the placeholder of one that the other machine lacks."""
        state = self._link.offer.facets.get(facet)
        if state is None or state.state == "missing":
            reason = "It has none." if state is None else state.reason
            self.provide(facet, Absent(facet, reason, "" if state is None else state.remedy), backend="")
        elif state.state == "blocked":
            self.provide(facet, Absent(facet, state.reason, state.remedy, OsPermissionRequired), backend="")
        else:
            self.provide(facet, part, backend=state.backend, is_proven=state.is_proven)

    def _desktop_scope(self) -> str:
        if self._scope:
            return self._scope
        found = next((scope.id for scope in self._link.offer.scopes if scope.type == "computer"), None)
        if found is None:
            raise UnsupportedPlatform(
                "That computer gave this one no scope for its desktop. Its owner can: computer-linker peer pair --allow SCOPE."
            )
        return found

    def _process_scope(self) -> str:
        """The selected folder scope; else the first in which programs may be started."""
        folders = [scope for scope in self._link.offer.scopes if scope.type == "folder"]
        if any(scope.id == self._scope for scope in folders):
            return self._scope
        found = next((scope.id for scope in folders if {*scope.capabilities} >= _STARTS), None)
        if found is None:
            raise UnsupportedPlatform(
                "That computer gave this one no scope to start programs in. "
                "Its owner can: computer-linker peer pair --allow SCOPE."
            )
        return found
