"""The service's dealings with other computers: listening, inviting, joining, forgetting, and the way to each of them."""

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from computer_linker.config.store import write_whole
from computer_linker.dispatch.farewell import Farewell
from computer_linker.errors import CannotServe, Conflict, ExecutionFailed, InvalidRequest, ProviderUnavailable
from computer_linker.extras import remedy
from computer_linker.model.envelope import Call, Reply
from computer_linker.registry.context import Progress
from computer_linker.service.app import App

if TYPE_CHECKING:
    from computer_linker.transports.peer.server import PeerServer

_FILE = "peer-listen.json"
_NEEDED = ("websockets", "msgpack", "cryptography")


class PeerDesk:
    """Answers the `peer.*` control actions, and routes calls. Nothing of it is imported before it is used."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._server: PeerServer | None = None

    async def start(self) -> None:
        """Listen again where the owner last said so."""
        path = self._app.home / _FILE
        if path.exists() and _is_installed():
            wanted = json.loads(path.read_text("utf-8"))
            await self._listen(wanted["host"], wanted["port"])

    async def aclose(self) -> None:
        """Stop listening."""
        if self._server is not None:
            await self._server.aclose()

    async def call(self, computer: str, call: Call, report: Progress | None) -> Reply:
        """Run a call on another computer."""
        _check_installed()
        from computer_linker.transports.peer.routes import PeerRoutes

        return await self._app.services.use(PeerRoutes).call(computer, call, report)

    def computers(self) -> list[dict[str, Any]]:
        """The computers this one is paired with; none is a common answer and costs nothing."""
        if not (self._app.home / "peers.json").exists() or not _is_installed():
            return []
        from computer_linker.transports.peer.routes import PeerRoutes

        return self._app.services.use(PeerRoutes).computers()

    def _listed(self) -> list[dict[str, Any]]:
        """The computers with what each may use here: the owner's to see, not the clients'."""
        from computer_linker.transports.peer.table import PeerTable

        peers = self._app.services.use(PeerTable).peers
        return [{**item, "mayUseHere": list(peers[item["name"]].grants)} for item in self.computers()]

    async def control(self, action: str, request: dict[str, Any]) -> dict[str, Any]:
        """One of the peer.* actions of the command line."""
        _check_installed()
        match action:
            case "peer.listen":
                return await self._listening(request)
            case "peer.invite":
                return self._invite(request)
            case "peer.join":
                return await self._join(request)
            case "peer.list":
                return {"ok": True, "computers": self._listed(), "listening": self._where()}
            case "peer.remove":
                return await self._remove(str(request.get("name")))
            case "peer.accept":
                return self._accept(str(request.get("name")), request.get("word"))
            case _:
                raise InvalidRequest("There is no such peer action.")

    async def _listening(self, request: dict[str, Any]) -> dict[str, Any]:
        host, port = str(request.get("host")), request.get("port")
        if type(port) is not int or not 0 <= port <= 65535:
            raise InvalidRequest("`port` is a port number.")
        before = self._server.address if self._server is not None else None
        if self._server is not None:
            await self._server.aclose()
        try:
            await self._listen(host, port)
        except CannotServe as error:
            # Where it cannot listen it has not moved to: paired computers find it where it was.
            if before is not None:
                await self._listen(*before)
            raise ExecutionFailed(error.message, hint=error.hint) from error
        wanted = {"host": host, "port": self._server.address[1] if self._server and self._server.address else port}
        write_whole(self._app.home, _FILE, json.dumps(wanted).encode())
        return {"ok": True, "listening": self._where()}

    async def _listen(self, host: str, port: int) -> None:
        from computer_linker.transports.peer.server import PeerServer

        server = PeerServer(self._app.services, self._app.dispatcher)
        await server.listen(host, port)
        self._server = server
        # Known to the service, so that one which started on demand does not end itself while others reach it.
        self._app.services.provide(PeerServer, server)

    def _invite(self, request: dict[str, Any]) -> dict[str, Any]:
        from computer_linker.transports.http.own_address import base_for_others
        from computer_linker.transports.peer.pairing import grouped

        if self._server is None or self._server.address is None:
            raise InvalidRequest("This computer does not listen for others yet. First: computer-linker peer listen")
        grants = tuple(str(grant) for grant in request.get("grants") or ())
        for grant in grants:
            if self._app.config.scope(grant.partition(":")[0]) is None:
                raise InvalidRequest(f"There is no scope {grant.partition(':')[0]!r} to give.")
        invitation = self._server.invitations.make(grants)
        answer = {"ok": True, "code": grouped(invitation.code), "listening": self._where(), "grants": list(grants)}
        return answer | {"address": base_for_others(f"http://{self._where()}").removeprefix("http://")}

    async def _join(self, request: dict[str, Any]) -> dict[str, Any]:
        from computer_linker.transports.peer.join import join
        from computer_linker.transports.peer.routes import PeerRoutes
        from computer_linker.transports.peer.server import plain_name
        from computer_linker.transports.peer.table import PeerTable

        address, code = str(request.get("address")), str(request.get("code"))
        try:
            peer, known_as = await join(address, code, self._app.services.use(PeerRoutes).own(None))
        except OSError as error:
            raise ProviderUnavailable(f"{address} cannot be reached: {error.strerror or error}.") from error
        name = plain_name(str(request["name"])) if request.get("name") else None
        kept = self._app.services.use(PeerTable).add(peer, name=name)
        return {"ok": True, "name": kept.name, "machineId": kept.machine_id, "knownThereAs": known_as}

    async def _remove(self, name: str) -> dict[str, Any]:
        from computer_linker.transports.peer.table import PeerTable

        if self._server is not None:
            peer = await self._server.forget(name)
        else:
            peer = self._app.services.use(PeerTable).remove(name)
        # What the old links of a machine that listened before may have left.
        await self._app.services.use(Farewell).end(f"peer:{peer.machine_id}", "peer")
        return {"ok": True, "removed": peer.name}

    def _accept(self, name: str, word: str | None) -> dict[str, Any]:
        """Tell what a machine became, and by which word that is accepted; or accept it."""
        from computer_linker.transports.peer.offer import changes, word_of
        from computer_linker.transports.peer.table import PeerTable

        table = self._app.services.use(PeerTable)
        peer = table.waiting(name)
        told = {"ok": True, "computer": peer.name, "changes": changes(peer.manifest, peer.refused)}
        if word is None:
            return {**told, "word": word_of(peer.refused), "accepted": False}
        if word != word_of(peer.refused):
            raise Conflict(
                f"{peer.name} says something else of itself by now.",
                hint=f"look again: computer-linker peer accept {peer.name}",
            )
        table.accept(peer.name)
        return {**told, "accepted": True}

    def _where(self) -> str | None:
        if self._server is None or self._server.address is None:
            return None
        from computer_linker.transports.http.guards import authority

        return authority(*self._server.address)


def _is_installed() -> bool:
    return all(find_spec(name) is not None for name in _NEEDED)


def _check_installed() -> None:
    if not _is_installed():
        raise ProviderUnavailable(f"Links to other computers are not installed. {remedy('peers')}")
