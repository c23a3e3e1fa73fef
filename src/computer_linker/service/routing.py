"""Routes a call to another computer: a paired one, or a machine of the fleet this service is the hub of."""

from typing import Any

from computer_linker.errors import InvalidRequest, Paused
from computer_linker.model.envelope import Call, Reply
from computer_linker.registry.context import Progress
from computer_linker.service.fleet import FleetManager
from computer_linker.service.peers import PeerManager


class ComputerRouter:
    """Finds the computer that a scope names. A name that means a paired computer and another machine is refused."""

    def __init__(self, peers: PeerManager, fleet: FleetManager) -> None:
        self._peers, self._fleet = peers, fleet

    def computers(self) -> list[dict[str, Any]]:
        """All computers that can be named in a scope."""
        return [*self._peers.computers(), *self._fleet.computers()]

    async def call(self, computer: str, call: Call, report: Progress | None) -> Reply:
        """Run the call there."""
        reply = await self._call(computer, call, report)
        _name_computer(reply.envelope, computer)
        return reply

    async def _call(self, computer: str, call: Call, report: Progress | None) -> Reply:
        if self._fleet.is_hub:
            paired, machines = (self._ids(manager, computer) for manager in (self._peers, self._fleet))
            if paired and machines - paired:
                ids = sorted(paired | machines)
                raise InvalidRequest(f"Several computers are called {computer[:60]!r}; use an id.", machineIds=ids)
            if not paired:
                return await self._fleet.call(computer, call, report)
        return await self._peers.call(computer, call, report)

    def _ids(self, manager: PeerManager | FleetManager, name: str) -> set[str]:
        return {str(item["machineId"]) for item in manager.computers() if name in (item["name"], item["machineId"])}


def _name_computer(envelope: dict[str, Any], computer: str) -> None:
    """Say in another computer's refusal while it is paused which computer that is: its message speaks of `this computer`."""
    error = envelope.get("error")
    if not isinstance(error, dict) or error.get("code") != Paused.code:
        return
    hint = f"Wait, or ask the owner of {computer} to run there: computer-linker unpause."
    envelope["error"] = {
        **error,
        "message": f"On {computer}: {error.get('message')}",
        "details": {**(error.get("details") or {}), "hint": hint},
    }
