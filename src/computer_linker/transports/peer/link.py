"""Calling a paired machine: one link, many calls, resumed after a drop without doing anything twice."""

import asyncio
import hashlib
import itertools
import secrets
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from computer_linker.errors import LinkError, PermissionDenied, ProviderUnavailable, TimedOut, wire_codes
from computer_linker.model.envelope import Attachment, Reply
from computer_linker.registry.context import Progress
from computer_linker.transports.peer.frames import MAX_FRAME, VERSION, packed, unpacked
from computer_linker.transports.peer.identity import Identity
from computer_linker.transports.peer.pairing import host_proof, joiner_proof, transcript_of
from computer_linker.transports.peer.server import plain_name
from computer_linker.transports.peer.table import Peer
from computer_linker.transports.peer.tls import SERVER_NAME, client_context, pairing_context

_CONNECT_S = 10.0
_RESUME_S = 20.0
_PAUSE_S = 0.2


class PeerLink:
    """The link to one paired machine, opened when first used and again when it broke."""

    def __init__(self, own: Identity, peer: Peer, hello: dict[str, Any]) -> None:
        self._own, self._peer, self._hello = own, peer, hello
        self._link: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reports: dict[int, Progress] = {}

    async def call(self, call: dict[str, Any], deadline_s: float, report: Progress | None = None) -> Reply:
        """Run one call there. A dropped link is resumed with the same key; what cannot be known is said to be unknown."""
        key = secrets.token_hex(16)
        sent = False
        try:
            async with asyncio.timeout(deadline_s):
                while True:
                    try:
                        link = await self._opened(within_s=_RESUME_S if sent else _CONNECT_S)
                        sent = True
                        return _reply(await self._exchange(link, key, call, report))
                    except ConnectionClosed:
                        await asyncio.sleep(_PAUSE_S)
        except TimeoutError:
            raise self._unknown("did not answer in time", sent, TimedOut) from None
        except ProviderUnavailable as error:
            raise (self._unknown("was lost", sent, ProviderUnavailable) if sent else error) from None

    async def aclose(self) -> None:
        """End the link."""
        if self._link is not None:
            await self._link.close()
        if self._reader is not None:
            self._reader.cancel()

    async def _exchange(
        self, link: ClientConnection, key: str, call: dict[str, Any], report: Progress | None
    ) -> dict[str, Any]:
        call_id = next(self._ids)
        answered = self._waiting[call_id] = asyncio.get_running_loop().create_future()
        if report is not None:
            self._reports[call_id] = report
        try:
            await link.send(packed({"t": "call", "id": call_id, "key": key, "call": call}))
            frame: dict[str, Any] = await answered
            return frame
        except asyncio.CancelledError:
            await link.send(packed({"t": "cancel", "id": call_id}))
            raise
        finally:
            del self._waiting[call_id]
            self._reports.pop(call_id, None)

    async def _opened(self, within_s: float) -> ClientConnection:
        async with self._opening:
            if self._link is not None and self._reader is not None and not self._reader.done():
                return self._link
            deadline = asyncio.get_running_loop().time() + within_s
            pause = 0.1
            while True:
                try:
                    self._link = await self._connect()
                    self._reader = asyncio.ensure_future(self._read(self._link))
                    return self._link
                except (OSError, InvalidHandshake, ConnectionClosed, TimeoutError) as error:
                    if asyncio.get_running_loop().time() + pause > deadline:
                        raise ProviderUnavailable(
                            f"{self._peer.name} cannot be reached. Is it on, and does it listen for peers?",
                            computer=self._peer.name,
                        ) from error
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, 2)

    async def _connect(self) -> ClientConnection:
        link = await connect(
            f"wss://{self._peer.address}/", ssl=client_context(self._own, self._peer.cert_pem), server_hostname=SERVER_NAME,
            max_size=MAX_FRAME, compression=None, open_timeout=_CONNECT_S, ping_interval=10, ping_timeout=20, proxy=None,
        )  # fmt: skip
        shown = link.transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        if hashlib.sha256(shown).hexdigest() != self._peer.fingerprint:
            await link.close()
            raise PermissionDenied(f"{self._peer.name} shows another key than the one that was paired.")
        await link.send(packed(self._hello))
        hello = unpacked(await link.recv())
        if hello["t"] != "hello" or hello.get("v") != VERSION or hello.get("machineId") != self._peer.machine_id:
            await link.close()
            raise PermissionDenied(f"{self._peer.name} calls itself another machine than the one that was paired.")
        return link

    async def _read(self, link: ClientConnection) -> None:
        try:
            async for raw in link:
                frame = unpacked(raw)
                waiting = self._waiting.get(frame.get("id", -1))
                if frame["t"] == "progress":
                    report = self._reports.get(frame.get("id", -1))
                    if report is not None:
                        report(str(frame.get("message")), frame.get("current"), frame.get("total"))
                elif waiting is not None and not waiting.done():
                    waiting.set_result(frame)
        finally:
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(ConnectionClosed(None, None))

    def _unknown(self, how: str, sent: bool, kind: type[LinkError]) -> LinkError:
        if not sent:
            return kind(f"{self._peer.name} {how}; nothing was sent.", computer=self._peer.name)
        return kind(
            f"{self._peer.name} {how} after the call was sent. Whether it was done there is not known; its own history tells.",
            computer=self._peer.name,
            effect="unverifiable",
        )


async def join(address: str, code: str, own: Identity, name: str, machine_id: str) -> tuple[Peer, str]:
    """Pair with a machine that shows a code; the peer, and the name it gave us."""
    async with connect(
        f"wss://{address}/", ssl=pairing_context(), server_hostname=SERVER_NAME, max_size=1_000_000, compression=None,
        open_timeout=_CONNECT_S, proxy=None,
    ) as link:  # fmt: skip
        offer = unpacked(await link.recv())
        cert, host_nonce = offer.get("cert"), offer.get("nonce")
        shown = link.transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        if type(cert) is not str or type(host_nonce) is not bytes:
            raise PermissionDenied("The machine does not offer a pairing.")
        nonce = secrets.token_bytes(32)
        transcript = transcript_of(cert, own.cert_pem, host_nonce, nonce)
        answer = {
            "t": "pair", "proof": joiner_proof(code, transcript), "nonce": nonce, "name": name, "machineId": machine_id,
            "cert": own.cert_pem,
        }  # fmt: skip
        await link.send(packed(answer))
        try:
            result = unpacked(await link.recv())
        except ConnectionClosed:
            raise PermissionDenied("The other machine refused the code: it is wrong, used up or expired.") from None
        peer = Peer(plain_name(str(offer.get("name"))), str(offer.get("machineId"))[:128], cert, address)
        if not secrets.compare_digest(result.get("proof", b""), host_proof(code, transcript)):
            raise PermissionDenied("The other machine could not prove that it knows the code. Nothing was paired.")
        if hashlib.sha256(shown).hexdigest() != peer.fingerprint:
            raise PermissionDenied("Somebody stands between the two machines. Nothing was paired.")
        return peer, str(result.get("as"))


def _reply(frame: dict[str, Any]) -> Reply:
    if frame["t"] == "error":
        kind = wire_codes().get(str(frame.get("code")), ProviderUnavailable)
        raise kind(str(frame.get("message"))[:500])
    attachments = [Attachment(str(item["mime"]), item["data"]) for item in frame.get("attachments", [])]
    return Reply(frame["envelope"], attachments)
