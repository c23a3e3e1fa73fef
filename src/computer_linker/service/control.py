"""What the command line asks of the running service over its socket: tools, and the service's own life."""

import asyncio
from typing import Any

from computer_linker.auth.oauth.state import OAuthState
from computer_linker.errors import InvalidRequest
from computer_linker.model.principal import Principal
from computer_linker.service.app import App
from computer_linker.service.approvals import ApprovalDesk
from computer_linker.service.fleet import FleetDesk
from computer_linker.service.peers import PeerDesk
from computer_linker.service.sessions import session_control
from computer_linker.service.tunnel_wish import Tunnels
from computer_linker.transports.http.approval_page import LINK_S, ApprovalPage
from computer_linker.transports.http.own_address import base_for_others, is_loopback
from computer_linker.transports.mcp.tools import Tools, check_arguments

_STILL_S = 5.0


class Controls:
    """Answers one control request: `{"tool", "arguments"}` or `{"action"}`."""

    def __init__(
        self, app: App, tools: Tools, stop: asyncio.Event, others: tuple[PeerDesk, FleetDesk], approvals: ApprovalDesk
    ) -> None:
        self._app = app
        self._peers, self._fleet = others
        self._approvals = approvals
        self._tools = tools
        self._stop = stop
        self.local_url: str | None = None
        self.bound_url: str | None = None
        self.tunnels: Tunnels | None = None

    async def __call__(self, request: dict[str, Any], principal: Principal) -> dict[str, Any]:
        if type(request) is not dict:
            raise InvalidRequest("A control request is an object.")
        if "tool" in request:
            return await self._tool(request, principal)
        match request.get("action"):
            case "hello":
                return {"ok": True, "localUrl": self.local_url}
            case "make_way":
                return self._make_way()
            case "stop":
                self._stop.set()
                return {"ok": True}
            case "halt":
                lanes = self._app.dispatcher.lanes
                return {"ok": True, "ended": lanes.halt(), "still": await lanes.until_still(_STILL_S)}
            case "resume":
                return {"ok": True, "resumed": self._app.dispatcher.lanes.resume()}
            case str(action) if action.startswith(("fleet.", "hub.")):
                return await self._fleet.control(action, request)
            case "approvals.link":
                return self._link()
            case str(action) if action.startswith("approvals."):
                return await self._approvals.control(action, request)
            case str(action) if action.startswith(("sessions.", "tunnel.", "peer.")):
                return await self._noted(action, request, principal)
            case _:
                raise InvalidRequest("There is no such control action.")

    async def _noted(self, action: str, request: dict[str, Any], principal: Principal) -> dict[str, Any]:
        """Who may come in from elsewhere is the owner's to say, and what they said is in the history."""

        async def work() -> dict[str, Any]:
            if action.startswith("sessions."):
                return session_control(self._app.services.use(OAuthState), self._app.config, action, request)
            if action.startswith("peer."):
                return await self._peers.control(action, request)
            if self.tunnels is None:
                raise InvalidRequest("A tunnel leads to the HTTP service: computer-linker start --tunnel PROVIDER.")
            return await self.tunnels.control(action, request)

        if action in ("sessions.list", "tunnel.status", "peer.list"):
            return await work()
        answer = (await self._app.dispatcher.introspect(action, principal, work)).envelope
        return answer if answer["ok"] else {"ok": False, **_told(answer["error"])}

    async def _tool(self, request: dict[str, Any], principal: Principal) -> dict[str, Any]:
        name = request["tool"]
        if name == "computer_operation":
            reply = await self._app.dispatcher.call_wire(check_arguments(request.get("arguments")), principal)
            return reply.envelope
        if type(name) is not str or not self._tools.has(name):
            raise InvalidRequest("There is no such tool.")
        reply = await self._tools.call(name, check_arguments(request.get("arguments")), principal)
        return reply.envelope

    def _link(self) -> dict[str, Any]:
        """A one-time link to the approval page, when the owner switched it on."""
        if not self._app.config.approval_page:
            raise InvalidRequest("The approval page is off. Switch it on: computer-linker config set approvalPage true")
        if self.local_url is None:
            raise InvalidRequest("The page needs the HTTP service: computer-linker serve --host ADDRESS.")
        base = base_for_others(self.bound_url or self.local_url)
        path = self._app.services.use(ApprovalPage).new_link()
        return {"ok": True, "url": base + path, "expiresInSeconds": int(LINK_S), "onlyHere": is_loopback(base)}

    def _make_way(self) -> dict[str, Any]:
        """An on-demand service ends for one that a person starts; a service with a port of its own stays."""
        if self.local_url is not None:
            return {"ok": False, "localUrl": self.local_url}
        self._stop.set()
        return {"ok": True}


def _told(error: dict[str, Any]) -> dict[str, Any]:
    """A failure as the command line shows it: a sentence, and what would help."""
    return {"error": error["message"], "hint": error["details"].get("hint") or ""}
