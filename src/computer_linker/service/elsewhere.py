"""The way to other computers, whichever way that is: a paired one first, then a machine of the fleet."""

from typing import Any

from computer_linker.errors import InvalidRequest
from computer_linker.model.envelope import Call, Reply
from computer_linker.registry.context import Progress
from computer_linker.service.fleet import FleetDesk
from computer_linker.service.peers import PeerDesk


class Elsewhere:
    """Both ways together. A name that means one computer here and another there means nothing."""

    def __init__(self, peers: PeerDesk, fleet: FleetDesk) -> None:
        self._peers, self._fleet = peers, fleet

    def computers(self) -> list[dict[str, Any]]:
        """All computers that can be named in a scope."""
        return [*self._peers.computers(), *self._fleet.computers()]

    async def call(self, computer: str, call: Call, report: Progress | None) -> Reply:
        """Run the call there."""
        if self._fleet.is_hub:
            paired, machines = (self._ids(desk, computer) for desk in (self._peers, self._fleet))
            if paired and machines - paired:
                ids = sorted(paired | machines)
                raise InvalidRequest(f"Several computers are called {computer[:60]!r}; use an id.", machineIds=ids)
            if not paired:
                return await self._fleet.call(computer, call, report)
        return await self._peers.call(computer, call, report)

    def _ids(self, desk: PeerDesk | FleetDesk, name: str) -> set[str]:
        return {str(item["machineId"]) for item in desk.computers() if name in (item["name"], item["machineId"])}
