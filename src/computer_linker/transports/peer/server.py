"""Listening for paired machines, and for the pairing itself."""

import asyncio
import hashlib
import secrets
import time
from dataclasses import replace
from typing import Any

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from computer_linker.computer.base import Computer
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.dispatch.live_sessions import LiveSessions
from computer_linker.dispatch.revocation import Revocation
from computer_linker.errors import CannotServe, InvalidRequest, LimitExceeded, LinkError, PermissionDenied
from computer_linker.model.principal import Principal
from computer_linker.services import Services
from computer_linker.transports.peer.acts import Acts
from computer_linker.transports.peer.bulk import Bulk, StreamAdmission
from computer_linker.transports.peer.facets import facet_catalog
from computer_linker.transports.peer.frames import VERSION, packed, unpacked
from computer_linker.transports.peer.host import HostSession, PeerDispatchers
from computer_linker.transports.peer.identity import Identity, fingerprint_of, own_identity, server_context, trust
from computer_linker.transports.peer.listener import HELLO_S, REFUSED, TOO_SLOW, UNPAIRED, PeerListener
from computer_linker.transports.peer.offer import (
    own_offer,
    parse_offer,
    pin_of,
    principal_id,
    principal_of,
    refuse_drift,
)
from computer_linker.transports.peer.pairing import Invitations, host_proof, transcript_of
from computer_linker.transports.peer.table import Peer, PeerTable, is_machine_id
from computer_linker.transports.refusals import RefusalNotes
from computer_linker.transports.tcp_entrance import TcpEntrance

_MAX_NOTED = 20
"""Recorded refusals of one peer, or of all unpaired machines, in a minute; a flood must not fill the history."""
_MAX_LINKS = 8
"""Links of one peer at a time; one more closes the oldest, which may be dead without having been detected."""
_TOO_BIG = 1009


class PeerServer:
    """One listening socket for paired machines."""

    def __init__(self, services: Services, dispatcher: Dispatcher) -> None:
        self._services = services
        self._dispatcher = dispatcher
        self.table = services.use(PeerTable)
        self.invitations = Invitations()
        self._bulk = Bulk()
        self._dispatchers = PeerDispatchers(
            dispatcher, dispatcher.with_catalog(facet_catalog()), self._bulk, self.table
        )
        self._acts: dict[str, Acts] = {}
        self._links: dict[str, dict[ServerConnection, None]] = {}
        self._ending: set[asyncio.Future[None]] = set()
        self._listener: PeerListener | None = None
        self._boot = secrets.token_hex(8)
        self._noted: dict[str, list[float]] = {}
        self.address: tuple[str, int] | None = None

    @property
    def identity(self) -> Identity:
        return own_identity(self._services.home, self._services.config.machine_id)

    def is_busy(self) -> bool:
        """True while listening: a service that others reach must not exit for lack of local clients."""
        return self.address is not None

    async def listen(self, host: str, port: int) -> None:
        """Begin to listen. Raises CannotServe when the address cannot be bound."""
        context = self._context = server_context(self.identity, [peer.cert_pem for peer in self.table.peers.values()])

        admission = StreamAdmission(self._bulk, context, self._refused_stream)
        self._loop = asyncio.get_running_loop()
        entrance = TcpEntrance(self._services.use(Computer), RefusalNotes(self._dispatcher, "peer"))
        listener = PeerListener(context, admission.take, self._refused_unpaired, entrance)
        try:
            self.address = await listener.open(host, port, self._serve)
        except OSError as error:
            await listener.aclose()
            raise CannotServe(
                f"cannot listen for peers on {host}:{port}: {error.strerror}", "choose another port"
            ) from error
        self._listener = listener

    async def aclose(self) -> None:
        """Stop listening and end the links."""
        if self._listener is not None:
            await self._listener.aclose()
            self._listener, self.address = None, None

    async def forget(self, name: str) -> Peer:
        """Unpair: the key is refused from now on, and open links are closed."""
        peer = self.table.remove(name)
        await self._end_links(peer, "unpaired")
        return peer

    async def _end_links(self, peer: Peer, why: str) -> None:
        """End the links and acts of an old pairing, and revoke its grants."""
        if (acts := self._acts.pop(peer.machine_id, None)) is not None:
            acts.end()
        links = self._links.pop(peer.fingerprint, {})
        try:
            await self._services.use(Revocation).end(principal_id(peer), "peer")
        finally:
            # Last, and all at once: each may wait for the other side, which need not answer.
            await asyncio.gather(*(link.close(UNPAIRED, why) for link in links), return_exceptions=True)

    async def _serve(self, link: ServerConnection) -> None:
        shown = link.transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        peer = None if shown is None else self.table.by_fingerprint(hashlib.sha256(shown).hexdigest())
        try:
            if shown is None:
                await self._pair(link)
            else:
                await self._host(link, peer)
        except ConnectionClosed as closed:
            if closed.sent is not None and closed.sent.code == _TOO_BIG:
                await self._note(link, peer, LimitExceeded("A frame was too large.", rule="oversized_frame"))
        except LinkError as error:
            await self._note(link, peer, error)
            await link.close(REFUSED, error.message[:100])
        except TimeoutError:
            await link.close(TOO_SLOW, "too slow")

    async def _host(self, link: ServerConnection, peer: Peer | None) -> None:
        if peer is None:
            raise PermissionDenied("That machine is not paired with this one.", rule="unpaired")
        peer = await self._greeted(link, peer)
        if self._listener is not None:
            self._listener.known(link)
        acts = self._acts.setdefault(peer.machine_id, Acts())
        session = HostSession(self._dispatchers, peer, acts, link.send)
        links = self._links.setdefault(peer.fingerprint, {})
        while len(links) >= _MAX_LINKS:
            oldest = next(iter(links))
            del links[oldest]
            await oldest.close(REFUSED, "too many links")
        # It may have been unpaired while it greeted; from here on its link is closed with the pairing.
        self.table.paired(peer.fingerprint)
        links = self._links.setdefault(peer.fingerprint, {})
        links[link] = None

        def end() -> None:
            self._ending.add(closing := asyncio.ensure_future(link.close(REFUSED, "ended by the owner")))
            closing.add_done_callback(self._ending.discard)

        try:
            with self._services.use(LiveSessions).connected(lambda: session.last_known, end):
                async for raw in link:
                    await session.take(unpacked(raw))
        finally:
            links.pop(link, None)
            await session.close()

    async def _greeted(self, link: ServerConnection, peer: Peer) -> Peer:
        """Exchange HELLO. It contains a nonce of this connection, so a recorded one is worthless."""
        nonce = secrets.token_bytes(16)
        async with asyncio.timeout(HELLO_S):
            await link.send(packed({"t": "challenge", "v": VERSION, "nonce": nonce}))
            hello = unpacked(await link.recv())
        peer = self.table.paired(peer.fingerprint)
        _check_hello(hello, peer, nonce)
        offer = parse_offer(hello.get("offer"))
        if not peer.manifest:
            peer = self.table.change(replace(peer, manifest=pin_of(offer)))
        try:
            refuse_drift(peer, offer)
        except PermissionDenied:
            self.table.change(replace(peer, refused=pin_of(offer)))
            raise
        await link.send(packed({**self._hello(peer), "nonce": hello.get("own"), "boot": self._boot}))
        return peer

    def _hello(self, peer: Peer) -> dict[str, Any]:
        """Our HELLO to a peer."""
        offer = own_offer(self._services, peer)
        return {"t": "hello", "v": VERSION, "machineId": self._services.config.machine_id, "offer": offer.to_wire()}

    async def _pair(self, link: ServerConnection) -> None:
        """Answer a pairing: both certificates are proved by the code, then pinned."""
        if not self.invitations.is_open:
            raise PermissionDenied("No code is shown on this machine, so no machine is paired.", rule="no_invitation")
        own, config = self.identity, self._services.config
        nonce = secrets.token_bytes(32)
        # An unpaired machine learns what the owner of the code needs, and nothing of what this machine can do.
        facts = {"t": "pair", "v": VERSION, "machineId": config.machine_id, "name": config.machine_name}
        async with asyncio.timeout(HELLO_S):
            await link.send(packed({**facts, "cert": own.cert_pem, "nonce": nonce}))
            answer = unpacked(await link.recv())
        joiner = _joiner(answer)
        transcript = transcript_of(own.cert_pem, joiner.cert_pem, nonce, answer["nonce"])
        invitation = self.invitations.answer(answer["proof"], transcript)
        if invitation is None:
            raise PermissionDenied("The pairing code is wrong, used up or expired.", rule="wrong_code")
        peer = self.table.add(replace(joiner, grants=invitation.grants, places=invitation.places), sets_grants=True)
        trust(self._context, peer.cert_pem)
        proof = host_proof(invitation.code, transcript)
        offer = own_offer(self._services, peer).to_wire()
        await link.send(packed({"t": "pair", "proof": proof, "as": peer.name, "offer": offer}))
        await self._end_links(peer, "paired anew")
        notes = {"given": ", ".join(peer.grants) or "nothing"}
        await self._dispatcher.note("peer.pair", principal_of(peer, "pairing", config.scopes), notes)

    def _refused_stream(self, rule: str) -> None:
        """Record a refused stream; called from the stream's own thread."""
        if not self._loop.is_closed():
            asyncio.run_coroutine_threadsafe(self._refused_unpaired("stream", rule), self._loop)

    async def _refused_unpaired(self, where: str, rule: str) -> None:
        await self._record("unpaired", where, PermissionDenied("A machine that is not paired was refused.", rule=rule))

    async def _note(self, link: ServerConnection, peer: Peer | None, error: LinkError) -> None:
        """Audit a refused peer."""
        where = str((link.remote_address or ("?",))[0])
        await self._record("unpaired" if peer is None else principal_id(peer), where, error)

    async def _record(self, who: str, where: str, error: LinkError) -> None:
        now = time.monotonic()
        recent = self._noted[who] = [at for at in self._noted.get(who, ()) if at > now - 60]
        if len(recent) >= _MAX_NOTED:
            return
        recent.append(now)
        principal = Principal(who, "peer", session="peer", connection=f"peer-{where}", client=None, grants=frozenset())

        async def refuse() -> dict[str, Any]:
            # Whatever the error, at the listener it is a denial, and the history has the rule.
            raise PermissionDenied(error.message, rule=error.details.get("rule") or error.code)

        await self._dispatcher.introspect("peer.connect", principal, refuse)


def _check_hello(hello: dict[str, Any], peer: Peer, nonce: bytes) -> None:
    if hello["t"] != "hello" or hello.get("v") != VERSION:
        raise InvalidRequest(f"This machine speaks version {VERSION} of the peer protocol.", rule="version")
    if type(hello.get("nonce")) is not bytes or not secrets.compare_digest(hello["nonce"], nonce):
        raise PermissionDenied("The greeting was not made for this connection.", rule="replayed_hello")
    if hello.get("machineId") != peer.machine_id:
        raise PermissionDenied("The machine calls itself another than the one that was paired.", rule="other_name")


def _joiner(answer: dict[str, Any]) -> Peer:
    name, machine_id, cert = answer.get("name"), str(answer.get("machineId")), answer.get("cert")
    if answer["t"] != "pair" or type(answer.get("proof")) is not bytes or type(answer.get("nonce")) is not bytes:
        raise InvalidRequest("A pairing answer has proof, nonce, name, machineId and cert.", rule="malformed_frame")
    if type(name) is not str or type(cert) is not str or not is_machine_id(machine_id):
        raise InvalidRequest("A pairing answer has proof, nonce, name, machineId and cert.", rule="malformed_frame")
    try:
        fingerprint_of(cert)
    except ValueError:
        raise InvalidRequest("The certificate cannot be read.", rule="malformed_frame") from None
    return Peer(plain_name(name), machine_id, cert, manifest=pin_of(parse_offer(answer.get("offer"))))


def plain_name(name: str) -> str:
    """A machine's name in a form that fits into a scope: letters, digits, dots and dashes."""
    kept = "".join(char if char.isascii() and (char.isalnum() or char in ".-_") else "-" for char in name[:40]).strip(
        "-."
    )
    return kept or "computer"
