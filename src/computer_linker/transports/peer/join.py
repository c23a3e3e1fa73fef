"""Pairing from the machine where the code is typed."""

import hashlib
import secrets

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from computer_linker.errors import PermissionDenied
from computer_linker.transports.peer.frames import packed, unpacked
from computer_linker.transports.peer.identity import SERVER_NAME, pairing_context
from computer_linker.transports.peer.link import CONNECT_S, Own
from computer_linker.transports.peer.offer import parse_offer, pin_of
from computer_linker.transports.peer.pairing import host_proof, joiner_proof, transcript_of
from computer_linker.transports.peer.server import plain_name
from computer_linker.transports.peer.table import Peer, is_machine_id


async def join(address: str, code: str, own: Own) -> tuple[Peer, str]:
    """Pair with a machine that shows a code; returns the peer, and the name it gave us."""
    async with connect(
        f"wss://{address}/", ssl=pairing_context(), server_hostname=SERVER_NAME, max_size=1_000_000, compression=None,
        open_timeout=CONNECT_S, proxy=None,
    ) as link:  # fmt: skip
        try:
            offer = unpacked(await link.recv())
        except ConnectionClosed:
            raise PermissionDenied("The other machine shows no code now: computer-linker peer pair there.") from None
        cert, host_nonce = offer.get("cert"), offer.get("nonce")
        shown = link.transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        if type(cert) is not str or type(host_nonce) is not bytes:
            raise PermissionDenied("The machine does not offer a pairing.")
        nonce, own_cert, own_offer = secrets.token_bytes(32), own.identity.cert_pem, own.offer()
        transcript = transcript_of(cert, own_cert, host_nonce, nonce)
        answer = {
            "t": "pair", "proof": joiner_proof(code, transcript), "nonce": nonce, "name": own_offer.name,
            "machineId": own.machine_id, "cert": own_cert, "offer": own_offer.to_wire(),
        }  # fmt: skip
        await link.send(packed(answer))
        try:
            result = unpacked(await link.recv())
        except ConnectionClosed:
            raise PermissionDenied("The other machine refused the code: it is wrong, used up or expired.") from None
        proof = result.get("proof")
        if type(proof) is not bytes or not secrets.compare_digest(proof, host_proof(code, transcript)):
            raise PermissionDenied("The other machine could not prove that it knows the code. Nothing was paired.")
        if not is_machine_id(offer.get("machineId")):
            raise PermissionDenied("The other machine does not say which it is. Nothing was paired.")
        peer = Peer(plain_name(str(offer.get("name"))), offer["machineId"], cert, address)
        if hashlib.sha256(shown).hexdigest() != peer.fingerprint:
            raise PermissionDenied("Another machine is between the two. Nothing was paired.")
        pinned = pin_of(parse_offer(result.get("offer")))
        return Peer(peer.name, peer.machine_id, cert, address, manifest=pinned), str(result.get("as"))
