"""Control requests of the command line over the private socket: tools, and the service's lifetime."""

from typing import Any

from computer_linker.errors import InvalidRequest
from computer_linker.model.principal import Principal
from computer_linker.registry.context import Progress
from computer_linker.serve.owner_calls import OwnerCalls
from computer_linker.service.app import App
from computer_linker.service.lifetime import Lifetime
from computer_linker.transports.mcp.tools import Tools, check_arguments


class Controls:
    """Answers one control request: `{"tool", "arguments"}` or `{"action"}`."""

    def __init__(self, app: App, tools: Tools, lifetime: Lifetime) -> None:
        self._app = app
        self._tools = tools
        self._lifetime = lifetime
        self._owner = OwnerCalls(app.dispatcher)

    async def __call__(self, request: dict[str, Any], principal: Principal, report: Progress) -> dict[str, Any]:
        if type(request) is not dict:
            raise InvalidRequest("A control request is an object.")
        if "tool" in request:
            return await self._tool(request, principal)
        if "owner" in request:
            return (await self._owner.call(str(request["owner"]), request.get("input"), principal, report)).envelope
        match request.get("action"):
            case "hello":
                return {"ok": True, "localUrl": self._lifetime.local_url}
            case "make_way":
                return self._stop_if_on_demand()
            case _:
                raise InvalidRequest("There is no such control action.")

    async def _tool(self, request: dict[str, Any], principal: Principal) -> dict[str, Any]:
        name = request["tool"]
        if name == "computer_operation":
            reply = await self._app.dispatcher.call_wire(check_arguments(request.get("arguments")), principal)
            return reply.envelope
        if type(name) is not str or not self._tools.has(name):
            raise InvalidRequest("There is no such tool.")
        reply = await self._tools.call(name, check_arguments(request.get("arguments")), principal)
        return reply.envelope

    def _stop_if_on_demand(self) -> dict[str, Any]:
        """End an on-demand service in favour of one that a person starts; a service with its own port stays."""
        if self._lifetime.local_url is not None:
            return {"ok": False, "localUrl": self._lifetime.local_url}
        self._lifetime.end()
        return {"ok": True}
