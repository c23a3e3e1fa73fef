"""The paired computers of this service: the listener for them, pairing, and calls to them.

The extra that links need is imported on first use, so that a service without paired computers starts without it.
"""

import json
import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

from computer_linker.config.store import write_whole
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.dispatch.revocation import Revocation
from computer_linker.errors import CannotServe, Conflict, ExecutionFailed, InvalidRequest, ProviderUnavailable
from computer_linker.extras import remedy
from computer_linker.model.base import Model
from computer_linker.model.envelope import Call, Reply
from computer_linker.model.times import shown_s
from computer_linker.policy.grants import granted_places
from computer_linker.registry.context import Progress
from computer_linker.services import Services

if TYPE_CHECKING:
    from computer_linker.transports.peer.server import PeerServer
    from computer_linker.transports.peer.table import Peer, PeerTable

_FILE = "peer-listen.json"
_MAX_NOTE = 80
_NEEDED = ("websockets", "msgpack", "cryptography")


class OfferedScope(Model):
    """A scope of a paired computer that may be used from here."""

    id: str
    type: str
    capabilities: list[str]


class PairedComputer(Model):
    """A paired computer as its owner here sees it; `address` is null for one that only calls this one."""

    name: str
    machine_id: str
    address: str | None
    scopes: list[OfferedScope]
    may_use_here: list[str]


class PeerManager:
    """Listens for paired computers, pairs with them, and sends calls to them."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._server: PeerServer | None = None
        self.listening_since: str | None = None

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services)

    async def start(self) -> None:
        """Listen at the stored address."""
        address = self.stored_address()
        if address is not None and _is_installed():
            await self._listen(*address)

    async def aclose(self) -> None:
        """Stop listening, for this run of the service."""
        server, self._server = self._server, None
        if server is not None:
            await server.aclose()

    def is_busy(self) -> bool:
        """True while other computers can reach this one: an on-demand service then stays."""
        return self._server is not None and self._server.is_busy()

    @property
    def address(self) -> tuple[str, int] | None:
        """Where the listener is now."""
        return self._server.address if self._server is not None else None

    @property
    def listening(self) -> str | None:
        """The listener's HOST:PORT."""
        if self.address is None:
            return None
        from computer_linker.transports.http.guards import authority

        return authority(*self.address)

    def stored_address(self) -> tuple[str, int] | None:
        """Where the service listens at its next start; None when it does not."""
        path = self._services.home / _FILE
        if not path.exists():
            return None
        stored = json.loads(path.read_text("utf-8"))
        return stored["host"], stored["port"]

    async def listen(self, host: str, port: int) -> None:
        """Listen here from now on, at later starts too. Raises ExecutionFailed, still listening where it was."""
        _check_installed()
        before = self.address
        await self.aclose()
        try:
            await self._listen(host, port)
        except CannotServe as error:
            if before is not None:
                await self._listen(*before)
            raise ExecutionFailed(error.message, hint=error.hint) from error
        stored = {"host": host, "port": self.address[1] if self.address is not None else port}
        write_whole(self._services.home, _FILE, json.dumps(stored).encode())

    async def stop_listening(self) -> None:
        """Stop listening, also at later starts; connected computers are disconnected."""
        (self._services.home / _FILE).unlink(missing_ok=True)
        await self.aclose()

    def invite(self, grants: list[str]) -> str:
        """A one-time code for another computer, which may then use `grants` here. An older code is void."""
        from computer_linker.transports.peer.pairing import grouped

        _check_installed()
        if self._server is None or self._server.address is None:
            raise InvalidRequest("This computer does not listen for others yet. First: computer-linker peer listen")
        for grant in grants:
            if self._services.config.scope(grant.partition(":")[0]) is None:
                raise InvalidRequest(f"There is no scope {grant.partition(':')[0]!r} to give.")
        places = granted_places(grants, self._services.config.scopes)
        return grouped(self._server.invitations.make(tuple(grants), places).code)

    @property
    def is_inviting(self) -> bool:
        """Whether a pairing code is valid now."""
        return self._server is not None and self._server.invitations.is_open

    @property
    def address_for_others(self) -> str:
        """The listener's address as another computer can reach it: not 0.0.0.0."""
        from computer_linker.transports.http.own_address import base_for_others

        return base_for_others(f"http://{self.listening}").removeprefix("http://")

    async def join(self, address: str, code: str, name: str | None) -> tuple["Peer", str]:
        """Pair with the computer that shows this code; it, and the name this one has there."""
        _check_installed()
        from computer_linker.transports.peer.join import join
        from computer_linker.transports.peer.routes import PeerRoutes
        from computer_linker.transports.peer.server import plain_name

        try:
            peer, known_as = await join(address, code, self._services.use(PeerRoutes).own(None))
        except OSError as error:
            raise ProviderUnavailable(f"{address} cannot be reached: {error.strerror or error}.") from error
        return self._table().add(peer, name=plain_name(name) if name else None), known_as

    def is_paired(self, peer: "Peer") -> bool:
        """Whether peers.json has this very key for it."""
        from computer_linker.transports.peer.table import PeerTable

        stored = PeerTable(self._services.home).by_fingerprint(peer.fingerprint)
        return stored is not None and stored.machine_id == peer.machine_id

    async def remove(self, name: str) -> "Peer":
        """Unpair a computer: end its links and what it has running here."""
        _check_installed()
        from computer_linker.transports.peer.offer import principal_id

        peer = self._table().remove(name) if self._server is None else await self._server.forget(name)
        # A listener that has closed since may have left calls running.
        await self._services.use(Revocation).end(principal_id(peer), "peer")
        return peer

    def changed(self, name: str) -> tuple["Peer", list[str], str]:
        """A computer refused because it changed: what changed, and the code that accepts exactly that."""
        _check_installed()
        from computer_linker.transports.peer.offer import changes, word_of

        peer = self._table().waiting(name)
        return peer, changes(peer.manifest, peer.refused), word_of(peer.refused)

    def accept(self, name: str, word: str) -> tuple["Peer", list[str]]:
        """Accept a computer as it is now. Raises Conflict when it changed again since the code was shown."""
        peer, changes, current = self.changed(name)
        if word != current:
            raise Conflict(
                f"{peer.name} says something else of itself by now.",
                hint=f"look again: computer-linker peer accept {peer.name}",
            )
        return self._table().accept(peer.name), changes

    async def call(self, computer: str, call: Call, report: Progress | None) -> Reply:
        """Run a call on a paired computer."""
        _check_installed()
        from computer_linker.transports.peer.routes import PeerRoutes

        return await self._services.use(PeerRoutes).call(computer, call, report)

    def computers(self) -> list[dict[str, Any]]:
        """The paired computers as clients see them. Most services have none and need no import."""
        if not (self._services.home / "peers.json").exists() or not _is_installed():
            return []
        from computer_linker.transports.peer.routes import PeerRoutes

        return self._services.use(PeerRoutes).computers()

    def paired(self) -> list[PairedComputer]:
        """The paired computers with what each may use here."""
        _check_installed()
        peers = self._table().peers
        return [
            PairedComputer.from_wire({**item, "mayUseHere": list(peers[item["name"]].grants)})
            for item in self.computers()
        ]

    async def _listen(self, host: str, port: int) -> None:
        from computer_linker.transports.peer.server import PeerServer

        server = PeerServer(self._services, self._services.use(Dispatcher))
        await server.listen(host, port)
        self._server = server
        self.listening_since = shown_s(time.time())

    def _table(self) -> "PeerTable":
        from computer_linker.transports.peer.table import PeerTable

        return self._services.use(PeerTable)


def grant_notes(grants: Sequence[str]) -> dict[str, str | int]:
    """The grants of another computer, for the history: joined where that is short enough to be recorded."""
    together = ", ".join(grants) or "nothing"
    if len(together) <= _MAX_NOTE:
        return {"grants": together}
    return {"grants": len(grants)} | {f"grant{number}": grant for number, grant in enumerate(grants, 1)}


def _is_installed() -> bool:
    return all(find_spec(name) is not None for name in _NEEDED)


def _check_installed() -> None:
    if not _is_installed():
        raise ProviderUnavailable(f"Links to other computers are not installed. {remedy('peers')}")
