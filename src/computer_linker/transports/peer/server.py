"""Listening for paired machines, and for the pairing itself."""

import asyncio
import hashlib
import secrets
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.errors import CannotServe, InvalidRequest, LinkError, PermissionDenied
from computer_linker.model.principal import Principal
from computer_linker.registry.services import Services
from computer_linker.transports.peer.frames import MAX_FRAME, VERSION, packed, unpacked
from computer_linker.transports.peer.host import Acts, HostSession
from computer_linker.transports.peer.identity import Identity, fingerprint_of, own_identity
from computer_linker.transports.peer.pairing import Invitations, host_proof, transcript_of
from computer_linker.transports.peer.table import Peer, PeerTable
from computer_linker.transports.peer.tls import server_context, trust

_HELLO_DEADLINE_S = 10


class PeerServer:
    """One listening socket for paired machines."""

    def __init__(self, services: Services, dispatcher: Dispatcher) -> None:
        self._services = services
        self._dispatcher = dispatcher
        self.table = services.use(PeerTable)
        self.invitations = Invitations()
        self._acts: dict[str, Acts] = {}
        self._links: dict[str, set[ServerConnection]] = {}
        self._server: Server | None = None
        self.address: tuple[str, int] | None = None

    @property
    def identity(self) -> Identity:
        return own_identity(self._services.home, self._services.config.machine_id)

    async def listen(self, host: str, port: int) -> None:
        """Begin to listen. Raises CannotServe when the address cannot be had."""
        self._context = server_context(self.identity, [peer.cert_pem for peer in self.table.peers.values()])
        try:
            self._server = await serve(
                self._serve, host, port, ssl=self._context, max_size=MAX_FRAME, max_queue=32, compression=None,
                ping_interval=10, ping_timeout=20, server_header=None, open_timeout=_HELLO_DEADLINE_S,
            )  # fmt: skip
        except OSError as error:
            raise CannotServe(
                f"cannot listen for peers on {host}:{port}: {error.strerror}", "choose another port"
            ) from error
        self.address = self._server.sockets[0].getsockname()[:2]

    async def aclose(self) -> None:
        """Stop listening and end the links."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def forget(self, name: str) -> Peer:
        """Unpair: the key opens nothing from now on, and links that are open end."""
        peer = self.table.remove(name)
        for link in list(self._links.pop(peer.fingerprint, ())):
            await link.close(4003, "unpaired")
        return peer

    async def _serve(self, link: ServerConnection) -> None:
        shown = link.transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        try:
            if shown is None:
                await self._pair(link)
            else:
                await self._host(link, hashlib.sha256(shown).hexdigest())
        except ConnectionClosed:
            pass
        except LinkError as error:
            await self._note(link, error)
            await link.close(4000, error.message[:100])
        except TimeoutError:
            await link.close(4001, "too slow")

    async def _host(self, link: ServerConnection, fingerprint: str) -> None:
        peer = self.table.by_fingerprint(fingerprint)
        if peer is None:
            raise PermissionDenied("That machine is not paired with this one.")
        async with asyncio.timeout(_HELLO_DEADLINE_S):
            hello = unpacked(await link.recv())
        self._check_hello(hello, peer)
        await link.send(packed(self.hello()))
        session = HostSession(self._dispatcher, peer, self._acts.setdefault(peer.machine_id, Acts()), link.send)
        links = self._links.setdefault(fingerprint, set())
        links.add(link)
        try:
            async for raw in link:
                await session.take(unpacked(raw))
        finally:
            links.discard(link)
            await session.close()

    def hello(self) -> dict[str, Any]:
        """Who we are, as we say it to a peer."""
        config = self._services.config
        return {"t": "hello", "v": VERSION, "machineId": config.machine_id, "name": config.machine_name}

    def _check_hello(self, hello: dict[str, Any], peer: Peer) -> None:
        if hello["t"] != "hello" or hello.get("v") != VERSION:
            raise InvalidRequest(f"This machine speaks version {VERSION} of the peer protocol.")
        if hello.get("machineId") != peer.machine_id:
            raise PermissionDenied("The machine calls itself another than the one that was paired.")

    async def _pair(self, link: ServerConnection) -> None:
        """Answer a pairing: both certificates are proved by the code, then pinned."""
        own = self.identity
        nonce = secrets.token_bytes(32)
        async with asyncio.timeout(_HELLO_DEADLINE_S):
            await link.send(packed({**self.hello(), "t": "pair", "cert": own.cert_pem, "nonce": nonce}))
            answer = unpacked(await link.recv())
        name, machine_id, cert = _joiner(answer)
        transcript = transcript_of(own.cert_pem, cert, nonce, answer["nonce"])
        invitation = self.invitations.answer(answer["proof"], transcript)
        if invitation is None:
            raise PermissionDenied("The pairing code is wrong, used up or expired.")
        peer = self.table.add(Peer(name, machine_id, cert, grants=invitation.grants))
        trust(self._context, cert)
        proof = host_proof(invitation.code, transcript)
        await link.send(
            packed({"t": "pair", "proof": proof, "name": self._services.config.machine_name, "as": peer.name})
        )

    async def _note(self, link: ServerConnection, error: LinkError) -> None:
        """A refused peer is an event of the history too."""
        where = str((link.remote_address or ("?",))[0])
        stranger = Principal(
            "unpaired", "peer", session="peer", connection=f"peer-{where}", client=None, grants=frozenset()
        )
        await self._dispatcher.refuse({"op": "peer.connect"}, stranger, error)


def _joiner(answer: dict[str, Any]) -> tuple[str, str, str]:
    name, machine_id, cert = answer.get("name"), answer.get("machineId"), answer.get("cert")
    if answer["t"] != "pair" or type(answer.get("proof")) is not bytes or type(answer.get("nonce")) is not bytes:
        raise InvalidRequest("A pairing answer has proof, nonce, name, machineId and cert.")
    if type(name) is not str or type(machine_id) is not str or type(cert) is not str or not 0 < len(machine_id) <= 128:
        raise InvalidRequest("A pairing answer has proof, nonce, name, machineId and cert.")
    try:
        fingerprint_of(cert)
    except ValueError:
        raise InvalidRequest("The certificate cannot be read.") from None
    return plain_name(name), machine_id, cert


def plain_name(name: str) -> str:
    """A machine's name as it can stand in a scope: letters, digits, dots and dashes."""
    kept = "".join(char if char.isascii() and (char.isalnum() or char in ".-_") else "-" for char in name[:40]).strip(
        "-."
    )
    return kept or "computer"
