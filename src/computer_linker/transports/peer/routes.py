"""`laptop/app`: the way from a scope with a computer's name in front to that computer's own dispatcher."""

from typing import Any, Self

from computer_linker.errors import NotFound, UnknownScope
from computer_linker.model.envelope import Call, Reply
from computer_linker.registry.context import Progress
from computer_linker.registry.services import Services
from computer_linker.transports.peer.frames import VERSION
from computer_linker.transports.peer.identity import own_identity
from computer_linker.transports.peer.link import PeerLink
from computer_linker.transports.peer.table import PeerTable

_DEADLINE_S = 1800.0


class PeerRoutes:
    """Links to the paired computers, opened when first used."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._links: dict[str, PeerLink] = {}

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services)

    async def aclose(self) -> None:
        """End the links."""
        for link in self._links.values():
            await link.aclose()

    def computers(self) -> list[dict[str, Any]]:
        """The computers that can be named in a scope."""
        peers = self._services.use(PeerTable).peers.values()
        return [{"name": peer.name, "machineId": peer.machine_id, "address": peer.address or None} for peer in peers]

    async def call(self, computer: str, call: Call, report: Progress | None) -> Reply:
        """Run the call on that computer; its scope is written without the computer's name there."""
        link = await self._link(computer)
        wire: dict[str, Any] = {"scope": call.scope, "op": call.op}
        given = {"target": call.target, "input": call.input, "options": call.options}
        wire.update({name: value for name, value in given.items() if value is not None})
        if call.confirm is not None:
            wire["confirm"] = {"token": call.confirm}
        return await link.call(wire, _DEADLINE_S, report)

    async def _link(self, computer: str) -> PeerLink:
        try:
            peer = self._services.use(PeerTable).find(computer)
        except NotFound as error:
            # The name came as part of a scope, and only scopes that exist are told apart from those that do not.
            raise UnknownScope(f"There is no such scope: {error.message}") from error
        link = self._links.get(peer.fingerprint)
        if link is None:
            config = self._services.config
            hello = {"t": "hello", "v": VERSION, "machineId": config.machine_id, "name": config.machine_name}
            own = own_identity(self._services.home, config.machine_id)
            link = self._links[peer.fingerprint] = PeerLink(own, peer, hello)
        return link
