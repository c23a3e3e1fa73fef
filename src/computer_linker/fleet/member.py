"""A machine in a fleet: announces its presence and runs the calls of allowed hubs under its own policy and audit."""

import asyncio
import hmac
import logging
import platform
import secrets
import shutil
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from nats.aio.msg import Msg
from pydantic_core import to_json

from computer_linker.audit.store import AuditStore
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.dispatch.revocation import Revocation
from computer_linker.errors import Aborted, InvalidRequest, LimitExceeded, LinkError, PermissionDenied
from computer_linker.fleet import messages
from computer_linker.fleet.feed import Destination, Feed, Visible, forget_cursors, send_continuously
from computer_linker.fleet.link import LOST, FleetLink, Wants
from computer_linker.fleet.messages import (
    Addressed,
    CallBody,
    Presence,
    ResendBody,
    SharedScope,
    parsed,
    plain_name,
    split,
)
from computer_linker.fleet.seal import MAX_MESSAGE, Ledger, Message, Signer, opened
from computer_linker.fleet.settings import AllowedHub, Facts, Joined
from computer_linker.fleet.streams import MAX_REQUEST, Streams, received
from computer_linker.fleet.tasks import bounded, cancel, restarting_task
from computer_linker.model.capability import Capability
from computer_linker.model.envelope import Reply, parse_call
from computer_linker.model.ids import short_key
from computer_linker.model.principal import Principal, parse_far
from computer_linker.policy.engine import holds, sees_scope
from computer_linker.policy.grants import grants_that_hold
from computer_linker.services import Services
from computer_linker.system import NAME

PROGRAMS = (
    "ansible", "bash", "bwrap", "cargo", "clang", "claude", "cmake", "codex", "curl", "docker", "dotnet", "ffmpeg", "gcc",
    "git", "go", "gradle", "helm", "java", "kubectl", "make", "mvn", "node", "npm", "nvidia-smi", "php", "pnpm", "podman",
    "psql", "python3", "rg", "ruby", "rustc", "rsync", "sqlite3", "ssh", "systemctl", "terraform", "tesseract", "tmux", "uv",
    "yarn",
)  # fmt: skip


def machine_facts() -> Facts:
    """Return the facts of this machine that queries can match."""
    return Facts(
        os=NAME,
        arch=platform.machine().lower(),
        has=[name for name in PROGRAMS if shutil.which(name) is not None],
    )


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Times:
    """Intervals and timeouts, in seconds."""

    heartbeat: float = 5.0
    history: float = 1.0
    """How often new records of the history are sent."""
    asked_again: float = 0.2
    """Several requests for its presence within this time get one answer."""


class Member:
    """This machine's side of a fleet. Only messages signed by an allowed hub's key are trusted."""

    def __init__(
        self, services: Services, dispatcher: Dispatcher, signer: Signer, joined: Joined, times: Times = Times()
    ) -> None:
        self._services, self._dispatcher, self._signer, self._joined = services, dispatcher, signer, joined
        self._times = times
        self._hubs = {hub.fingerprint: hub for hub in joined.hubs}
        self._epoch = secrets.token_hex(16)
        # One for each hub: none may read or cancel another's calls, or use up what another may send.
        self._ledgers = {hub: Ledger() for hub in self._hubs}
        self._facts = machine_facts()
        self._links = self._announced = 0
        self._announce_soon = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._background: list[asyncio.Task[None]] = []
        self._streams = Streams(signer, joined.seat, lambda error: self._spawn(self._refuse(error, None)))
        listens = {
            messages.calls(joined.seat): self._take, messages.ASK: self._presence_requested,
            self._streams.subject: self._streams.take,
        }  # fmt: skip
        self.link = FleetLink(joined.place, messages.inbox(joined.seat), Wants(listens, self._up, self._down))
        forget_cursors(services.home, (hub.fingerprint for hub in joined.hubs))
        self.feeds = {hub.fingerprint: self._feed(hub) for hub in joined.hubs}

    def start(self) -> None:
        """Begin to connect; the machine is reachable once the server is."""
        self.link.start()
        self._background = [restarting_task(self._beat, "the fleet's presence")]
        for hub in self._joined.hubs:
            # Separately: an unreachable hub must not delay the history of another.
            sending = partial(
                send_continuously, self.feeds[hub.fingerprint], partial(self._visible, hub), self._times.history
            )
            self._background.append(restarting_task(sending, f"the history for {plain_name(hub.name)}"))

    async def aclose(self, *, leaving: bool = False) -> None:
        """Disconnect, and announce whether the machine stops or leaves."""
        await cancel(self._background)
        for ledger in self._ledgers.values():
            await ledger.aclose()
        if self.link.is_up:
            await self._send_rest()
            await self._announce_end("leaves" if leaving else "stops")
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=5)
        for feed in self.feeds.values():
            feed.store_cursor()
        await self.link.aclose()

    async def part_from(self, all_but: Collection[str] = ()) -> None:
        """Stop what runs here for hubs that lost their access; `all_but` are the keys that keep it."""
        for hub in [hub for key, hub in self._hubs.items() if key not in all_but]:
            await self._services.use(Revocation).end(self._principal(hub).id, "peer")

    async def _announce_end(self, going: Literal["stops", "leaves"]) -> None:
        await self._announce(going)
        try:
            await self.link.flush()
        except LOST as error:
            log.info("the fleet may not have been notified that this machine disconnects: %s", error)

    async def _send_rest(self) -> None:
        """Send the last records before the disconnect, if the server accepts them at once; else the next run does."""
        sends = [self._send_last(hub) for hub in self._joined.hubs]
        await asyncio.gather(*sends)

    async def _send_last(self, hub: AllowedHub) -> None:
        try:
            await bounded(self.feeds[hub.fingerprint].send(self._visible(hub)), 2)
        except (TimeoutError, LinkError) as error:
            log.info("the newest records wait for the next run: %s", error)

    def is_busy(self) -> bool:
        """True while it is part of the fleet: it keeps an on-demand service running."""
        return True

    async def _up(self) -> None:
        self._links += 1
        self._streams.again()
        self._announce_soon.set()

    async def _down(self) -> None:
        self._streams.again()
        log.info("the fleet's server cannot be reached: %s", self.link.problem or "the connection ended")

    async def _presence_requested(self, _: Msg) -> None:
        self._announce_soon.set()

    async def _beat(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._times.heartbeat):
                    await self._announce_soon.wait()
                self._announce_soon.clear()
            except TimeoutError:
                pass
            if self.link.is_up:
                await self._announce()
            await asyncio.sleep(self._times.asked_again)

    async def _announce(self, going: Literal["stays", "stops", "leaves"] = "stays") -> None:
        self._announced += 1
        try:
            presence = self._presence(going)
            sealed = self._signer.sealed("here", presence.model_dump(by_alias=True))
            await self.link.publish(messages.presence(self._joined.seat), sealed)
        except LinkError as error:
            # The config is invalid, or the server just went away: the hub then sees a machine that does not answer.
            log.warning("the presence of this machine could not be announced: %s", error.message)

    def _presence(self, going: Literal["stays", "stops", "leaves"]) -> Presence:
        config = self._services.config
        return Presence(
            machine_id=config.machine_id,
            name=plain_name(self._joined.name or config.machine_name),
            seat=self._joined.seat,
            epoch=self._epoch,
            link=self._links,
            number=self._announced,
            at=time.time(),
            every=self._times.heartbeat,
            going=going,
            facts=self._facts,
            scopes={hub.fingerprint: self._shared(hub) for hub in self._joined.hubs},
            proofs=self._proofs(),
            history=self._services.use(AuditStore).journal.head.number,
            sent={hub: feed.sent for hub, feed in self.feeds.items()},
        )

    def _shared(self, hub: AllowedHub) -> list[SharedScope]:
        who = self._principal(hub)
        return [
            SharedScope(
                id=scope.id,
                type=scope.type,
                capabilities=[c.value for c in sorted(scope.granted) if holds(who, scope, c)],
            )
            for scope in self._services.config.scopes
            if sees_scope(who, scope.id)
        ]

    def _feed(self, hub: AllowedHub) -> Feed:
        goal = Destination(self._joined.seat, self._signer, hub.fingerprint, self._joined.place.url)
        return Feed(self._services.home, self._services.use(AuditStore), goal, self.link)

    def _visible(self, hub: AllowedHub) -> Visible:
        """A hub sees the events of scopes it holds `history:all` for, and what it did itself."""
        who = self._principal(hub)
        scopes = self._services.config.scopes
        return Visible(frozenset(scope.id for scope in scopes if holds(who, scope, Capability.HISTORY_ALL)), who.id)

    @property
    def history_problem(self) -> str | None:
        """Why the history of this machine is not sent, if that is so for any hub."""
        return next((feed.problem for feed in self.feeds.values() if feed.problem is not None), None)

    def _proofs(self) -> dict[str, str]:
        secret = self._joined.proof_secret
        if secret is None:
            return {}
        return {hub.fingerprint: proof_of(secret, self._signer.fingerprint) for hub in self._joined.hubs}

    async def _take(self, raw: Msg) -> None:
        """Handle one message. A bad one is audited; only an allowed hub gets an error reply."""
        hub: AllowedHub | None = None
        request: Addressed | None = None
        try:
            if len(raw.data) > MAX_REQUEST:
                raise InvalidRequest("A request of the fleet is too large.", rule="oversized")
            message = opened(raw.data, self._hubs.__contains__)
            hub = self._hubs.get(message.signer)
            assert hub is not None, "opened() lets no other key through"
            request = _request(message)
            self._check(request, hub)
            match request:
                case CallBody():
                    self._run(request, hub)
                case ResendBody():
                    self.feeds[hub.fingerprint].rewind(request.first)
                case _:
                    self._ledgers[hub.fingerprint].cancel(request.key)
        except LinkError as error:
            await self._refuse(error, hub)
            if hub is not None and isinstance(request, CallBody):
                self._spawn(self._send_answer(request, hub, self._refusal(request, hub, error)))

    def _check(self, request: Addressed, hub: AllowedHub) -> None:
        if request.to != self._signer.fingerprint:
            raise PermissionDenied("This request is for another machine.", rule="another_machine")
        request.check_time()
        if request.epoch != self._epoch:
            raise PermissionDenied("This machine has started anew since it was asked.", rule="restarted")
        # Stored longer than any allowed clock difference could let it through again.
        self._ledgers[hub.fingerprint].spend(request.nonce, request.until + 300)

    def _run(self, request: CallBody, hub: AllowedHub) -> None:
        act = self._ledgers[hub.fingerprint].act(
            request.key, request.until + 300, lambda: self._performed(request, hub)
        )
        self._spawn(self._answer(request, hub, act))

    async def _performed(self, request: CallBody, hub: AllowedHub) -> Reply:
        who = self._principal(hub).behind(parse_far(request.behalf))
        if request.stream is None:
            return await self._dispatcher.call_wire(request.call, who)
        seat = messages.seat_of(hub.fingerprint)
        try:
            with self._streams.expected(self.link, request.stream, hub.fingerprint, seat) as flow:
                if request.is_large:
                    return await self._dispatcher.call_wire(await received(flow), who)
                return await self._dispatcher.call(replace(parse_call(request.call), stream=flow), who)
        except LinkError as error:
            return await self._dispatcher.refuse(request.call, who, error)

    async def _answer(self, request: CallBody, hub: AllowedHub, act: "asyncio.Task[Reply]") -> None:
        try:
            reply = await asyncio.shield(act)
        except asyncio.CancelledError:
            if not act.cancelled():
                raise
            await self._send_answer(request, hub, self._refusal(request, hub, Aborted("The call was cancelled.")))
            return
        body = self._to(request, hub) | {
            "envelope": to_json(reply.envelope, by_alias=True),
            "attachments": [[item.mime, item.data] for item in reply.attachments],
        }
        await self._send_answer(request, hub, body)

    async def _send_answer(self, request: CallBody, hub: AllowedHub, body: dict[str, Any]) -> None:
        sealed = self._signer.sealed("answer", body)
        if len(sealed) > MAX_MESSAGE:
            error = LimitExceeded("The answer is larger than a fleet carries; ask for less.", rule="too_large")
            sealed = self._signer.sealed("answer", self._refusal(request, hub, error))
        where = messages.reply(messages.seat_of(hub.fingerprint), self._joined.seat, request.call_id)
        try:
            for part in split(sealed, self.link.largest):
                await self.link.publish(where, part)
        except LinkError as error:
            # It is stored: a hub that repeats the call with the same key gets it.
            log.info("an answer could not be sent: %s", error.message)

    def _to(self, request: Addressed, hub: AllowedHub) -> dict[str, Any]:
        return {"to": hub.fingerprint, "key": request.key, "nonce": request.nonce, "epoch": self._epoch}

    def _refusal(self, request: Addressed, hub: AllowedHub, error: LinkError) -> dict[str, Any]:
        rule = str(error.details.get("rule", ""))
        return self._to(request, hub) | {"refused": error.code, "message": error.message, "rule": rule}

    async def _refuse(self, error: LinkError, hub: AllowedHub | None) -> None:
        await self._dispatcher.refuse({"op": "fleet.call"}, self._principal(hub), error)

    def _principal(self, hub: AllowedHub | None) -> Principal:
        who = "fleet:unknown" if hub is None else f"fleet:{plain_name(hub.name)}-{short_key(hub.fingerprint)}"
        connection = f"fleet-{self._epoch[:6]}-{self._links}"
        if hub is None:
            return Principal(who, "peer", session=who, connection=connection, grants=frozenset())
        grants = grants_that_hold(hub.grants, hub.places, self._services.config.scopes)
        return Principal(who, "peer", session=who, connection=connection, client=hub.name, grants=grants)

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def proof_of(secret: str, fingerprint: str) -> str:
    """The proof that the machine of this key has this invitation; worthless for any other key."""
    return hmac.new(secret.encode(), b"computer-linker fleet join " + fingerprint.encode(), "sha256").hexdigest()


def _request(message: Message) -> Addressed:
    match message.kind:
        case "call":
            return parsed(CallBody, message.body)
        case "resend":
            return parsed(ResendBody, message.body)
        case "cancel":
            return parsed(Addressed, message.body)
        case _:
            raise InvalidRequest("That message is not for a machine.", rule="malformed")
