"""Routes calls for `laptop/app` to the dispatcher of the paired computer `laptop`."""

from dataclasses import replace
from typing import Any, Self

from computer_linker.computer.remote.computer import RemoteComputer
from computer_linker.computer.remote.link import Offer
from computer_linker.errors import NotFound, UnknownScope
from computer_linker.model.effect import Effect
from computer_linker.model.envelope import Call, Reply
from computer_linker.registry.catalog import Catalog
from computer_linker.registry.context import Progress
from computer_linker.services import Services
from computer_linker.transports.peer.identity import own_identity
from computer_linker.transports.peer.link import Own, PeerLink
from computer_linker.transports.peer.offer import drift, own_offer, pin_of
from computer_linker.transports.peer.table import Peer, PeerTable

_DEADLINE_S = 1800.0


class PeerRoutes:
    """Links to the paired computers, opened when first used."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._table = services.use(PeerTable)
        self._links: dict[str, tuple[Peer, PeerLink]] = {}

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services)

    async def aclose(self) -> None:
        """End the links."""
        for _, link in self._links.values():
            await link.aclose()
        self._links.clear()

    def computers(self) -> list[dict[str, Any]]:
        """The computers that can be named in a scope."""
        return [
            {"name": peer.name, "machineId": peer.machine_id, "address": peer.address or None, "scopes": _scopes(peer)}
            for peer in self._table.peers.values()
        ]

    async def call(self, computer: str, call: Call, report: Progress | None) -> Reply:
        """Run the call on that computer; its scope is written without the computer's name there."""
        wire: dict[str, Any] = {"scope": call.scope, "op": call.op}
        given = {"target": call.target, "input": call.input, "options": call.options}
        wire.update({name: value for name, value in given.items() if value is not None})
        if call.confirm is not None:
            wire["confirm"] = {"token": call.confirm}
        op = self._services.use(Catalog).by_name.get(call.op)
        is_safe = op is not None and op.effect is Effect.OBSERVE
        link = await self.link(computer)
        return await link.call(wire, _DEADLINE_S, report, is_safe=is_safe, flow=call.stream, far=call.far)

    async def remote_computer(self, computer: str, scope: str = "") -> RemoteComputer:
        """That computer with all its facets, on an open link. Closing it leaves the link to others."""
        return RemoteComputer(await (await self.link(computer)).opened(), scope)

    async def link(self, computer: str) -> PeerLink:
        """The link to a computer by its name or machine id."""
        try:
            peer = self._table.find(computer)
        except NotFound as error:
            # The name arrived as part of a scope; the answer must not distinguish hidden scopes from missing ones.
            raise UnknownScope(error.message) from error
        known = self._links.get(peer.machine_id)
        if known is not None and (known[0] is peer or replace(known[0], refused={}) == replace(peer, refused={})):
            return known[1]
        link = PeerLink(self.own(peer), peer)
        self._links[peer.machine_id] = (peer, link)
        if known is not None:
            # Paired again, or accepted: the offer of the old link no longer counts.
            await known[1].aclose()
        return link

    def own(self, peer: Peer | None) -> Own:
        """This machine as it presents itself to a peer."""
        config = self._services.config

        def learnt(offer: Offer) -> None:
            if peer is None:
                return
            # As it is paired now: the owner may have changed its grants since this link was made.
            now = self._table.paired(peer.fingerprint)
            if not now.manifest:
                self._table.change(replace(now, manifest=pin_of(offer)))
            elif drift(now.manifest, offer):
                self._table.change(replace(now, refused=pin_of(offer)))

        identity = own_identity(self._services.home, config.machine_id)
        return Own(identity, config.machine_id, lambda: own_offer(self._services, peer), learnt)


def _scopes(peer: Peer) -> list[dict[str, Any]]:
    """The scopes it offered when it was paired, so that a client can name them."""
    given = peer.manifest.get("scopes", {})
    return [
        {"id": f"{peer.name}/{name}", "type": rights[0], "capabilities": rights[1:]} for name, rights in given.items()
    ]
