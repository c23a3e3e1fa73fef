"""The hub: tracks which machines are connected, and forwards calls to them and replies back."""

import asyncio
import logging
import secrets
import time
from typing import Any

from nats.aio.msg import Msg

from computer_linker.computer.remote.flow import Connect, Flow, Pipe
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.errors import (
    InvalidRequest,
    LinkError,
    PermissionDenied,
    ProviderUnavailable,
)
from computer_linker.fleet import messages
from computer_linker.fleet.link import FleetLink, Wants
from computer_linker.fleet.machines import Machine, Machines
from computer_linker.fleet.messages import AnswerBody, Presence, moment, parsed
from computer_linker.fleet.seal import Signer, opened
from computer_linker.fleet.streams import Streams, TooLarge, streamed
from computer_linker.fleet.tasks import cancel, restarting_task
from computer_linker.fleet.waiting import SideStream, Waiting, late, reply_of, unknown
from computer_linker.model.envelope import Reply
from computer_linker.model.principal import FarClient, Principal

log = logging.getLogger(__name__)

RESUME_S = 20.0
"""How long a machine or the server may be away during a call before its outcome counts as unknown."""
_LOOK_S = 0.5
_LARGE_AT_ONCE = 4
_LAST_WORD_S = 2.0
"""How long a machine whose byte stream stalled may still send the reason."""
_MAX_PRESENCE = 128 * 1024


class Hub:
    """One hub on one server."""

    def __init__(self, dispatcher: Dispatcher, signer: Signer, machines: Machines, resume_s: float = RESUME_S) -> None:
        self._dispatcher, self._signer, self.machines = dispatcher, signer, machines
        self._resume_s = resume_s
        self.seat = messages.seat_of(signer.fingerprint)
        self._waiting: dict[str, Waiting] = {}
        self._heard = asyncio.Event()
        self._large = asyncio.Semaphore(_LARGE_AT_ONCE)
        self._tasks: list[asyncio.Task[None]] = []
        self._refusing: set[asyncio.Task[None]] = set()
        self.streams = Streams(signer, self.seat, self._refuse_soon)
        listens = {
            messages.EVERY_PRESENCE: self._receive_presence, messages.every_reply(self.seat): self._receive_reply,
            self.streams.subject: self.streams.take,
        }  # fmt: skip
        self.link = FleetLink(machines.settings.place, messages.inbox(self.seat), Wants(listens, self._up, self._down))
        machines.is_connected = lambda: self.link.is_up

    def start(self) -> None:
        """Begin to connect."""
        self.link.start()
        self._tasks = [restarting_task(self._watch, "the hub's watch")]

    async def aclose(self) -> None:
        """Disconnect; calls in flight end with an unknown outcome."""
        await cancel(self._tasks)
        for waiting in self._waiting.values():
            waiting.give_up("The hub was stopped")
        await self.link.aclose()

    async def call(
        self,
        machine: Machine,
        call: dict[str, Any],
        within_s: float,
        *,
        observes: bool,
        flow: Flow | None = None,
        far: FarClient | None = None,
    ) -> Reply:
        """Run one call there, with or without a byte stream. An unanswered call is unknown, never done or not done."""
        self._check_online(machine)
        if flow is not None:
            return await self._with_stream(machine, call, within_s, flow, far, observes=observes)
        try:
            return await self._called(machine, call, within_s, far, observes=observes)
        except TooLarge:
            async with self._large, streamed(call) as whole:
                return await self._with_stream(machine, None, within_s, whole, far, observes=observes)

    async def _with_stream(
        self,
        machine: Machine,
        call: dict[str, Any] | None,
        within_s: float,
        flow: Flow,
        far: FarClient | None,
        *,
        observes: bool,
    ) -> Reply:
        """Run a call with its byte stream; without a given one, the stream carries the call itself."""
        handle, known = secrets.token_hex(16), machine.known
        with self.streams.dialling(self.link, handle, known.fingerprint, known.seat) as dial:
            beside = SideStream(handle, lambda waiting: flow.carried_by(_heeded(dial, waiting)), is_call=call is None)
            return await flow.until(self._called(machine, call or {}, within_s, far, observes=observes, beside=beside))

    async def _called(
        self,
        machine: Machine,
        call: dict[str, Any],
        within_s: float,
        far: FarClient | None,
        *,
        observes: bool,
        beside: SideStream | None = None,
    ) -> Reply:
        waiting = Waiting(
            machine, secrets.token_hex(16), secrets.token_hex(16), time.time() + within_s, call,
            asyncio.get_running_loop().create_future(), observes, beside, far,
        )  # fmt: skip
        self._waiting[waiting.call_id] = waiting
        try:
            async with asyncio.timeout(within_s):
                await self._send(waiting)
                answer = await waiting.answer
                # Not with a byte stream: the machine would continue it on a file that may have changed.
                if answer.rule == "restarted" and observes and beside is None:
                    await self._next_run(waiting)
                    waiting.answer = asyncio.get_running_loop().create_future()
                    await self._send(waiting)
                    answer = await waiting.answer
            return reply_of(waiting, answer)
        except TimeoutError:
            problem = f"{machine.known.name} did not answer within {within_s:g} seconds"
            raise late(waiting, problem, within_s) from None
        except asyncio.CancelledError:
            await self._cancel(waiting)
            raise
        finally:
            del self._waiting[waiting.call_id]

    def _check_online(self, machine: Machine) -> None:
        name, state = machine.known.name, self.machines.state(machine)
        if state == "unknown":
            raise ProviderUnavailable("The fleet's server cannot be reached; nothing was sent.", computer=name)
        if state != "online":
            raise ProviderUnavailable(
                f"{name} is not there; nothing was sent.", computer=name, state=state,
                lastSeenAt=moment(machine.known.last_seen_at),
            )  # fmt: skip

    async def _send(self, waiting: Waiting) -> None:
        """Send the call, or send it again: the same key in a new message."""
        presence = waiting.machine.presence
        assert presence is not None, "only a machine that is there is asked"
        nonce = secrets.token_hex(16)
        body = self._addressed(waiting, nonce) | {"callId": waiting.call_id, "call": waiting.call}
        if waiting.far is not None:
            body |= {"behalf": [waiting.far.id, waiting.far.name]}
        if waiting.beside is not None:
            body |= {"stream": waiting.beside.handle, "isLarge": waiting.beside.is_call}
        sealed = self._signer.sealed("call", body)
        if len(sealed) > self.link.largest > 0:
            raise TooLarge
        waiting.nonces.add(nonce)
        waiting.epoch, waiting.link = presence.epoch, presence.link
        seat = waiting.machine.known.seat
        await self.link.publish(messages.calls(seat), sealed, messages.reply(self.seat, seat, waiting.call_id))
        if waiting.beside is not None:
            waiting.beside.begin(waiting)

    def _addressed(self, waiting: Waiting, nonce: str) -> dict[str, Any]:
        presence = waiting.machine.presence
        assert presence is not None, "only a machine that is there is asked"
        return {
            "to": waiting.machine.known.fingerprint, "epoch": waiting.epoch or presence.epoch, "nonce": nonce,
            "key": waiting.key, "at": time.time(), "until": waiting.until,
        }  # fmt: skip

    async def _watch(self) -> None:
        """Poll the calls in flight: no event reports a machine that went silent."""
        while True:
            await asyncio.sleep(_LOOK_S)
            await self._check_all(list(self._waiting.values()))

    async def _check_all(self, calls: list[Waiting]) -> None:
        for waiting in calls:
            if not waiting.answer.done() and waiting.nonces:
                try:
                    await self._check(waiting)
                except LinkError as error:
                    if not waiting.answer.done():
                        waiting.answer.set_exception(error)

    async def _check(self, waiting: Waiting) -> None:
        """Send the call again after a reconnect; give up when the connection stays lost."""
        machine = waiting.machine
        presence, is_there = machine.presence, self.machines.state(machine) == "online"
        if not is_there or presence is None:
            waiting.away_since = waiting.away_since or time.monotonic()
            if time.monotonic() - waiting.away_since > self._resume_s:
                raise unknown(waiting, f"{machine.known.name} was lost after the call was sent")
        elif presence.epoch != waiting.epoch:
            raise unknown(waiting, f"{machine.known.name} was started anew after the call was sent")
        elif waiting.away_since is not None or presence.link != waiting.link:
            waiting.away_since = None
            try:
                await self._send(waiting)
            except (LinkError, TooLarge):
                # It was sent before, so its outcome is open: the next check tries again, or gives up with an unknown outcome.
                waiting.away_since = time.monotonic()

    async def _cancel(self, waiting: Waiting) -> None:
        sealed = self._signer.sealed("cancel", self._addressed(waiting, secrets.token_hex(16)))
        try:
            await self.link.publish(messages.calls(waiting.machine.known.seat), sealed)
        except LinkError as error:
            log.info("a cancelled call could not be ended there: %s", error.message)

    async def _next_run(self, waiting: Waiting) -> None:
        """Wait for the presence message of a restarted machine."""
        while waiting.machine.presence is None or waiting.machine.presence.epoch == waiting.epoch:
            await self._heard.wait()
        waiting.epoch = ""

    async def _up(self) -> None:
        self.streams.again()
        for waiting in self._waiting.values():
            # Messages in flight when the connection broke may be lost: calls are sent again once the machine is heard.
            waiting.away_since = waiting.away_since or time.monotonic()
        await self.link.publish(messages.ASK, b"")

    async def _down(self) -> None:
        self.streams.again()
        log.info("the fleet's server cannot be reached: %s", self.link.problem or "the connection ended")

    async def _receive_presence(self, raw: Msg) -> None:
        """Handle a presence message."""
        try:
            if len(raw.data) > _MAX_PRESENCE:
                raise InvalidRequest("A machine says too much of itself.", rule="oversized")
            message = opened(raw.data, lambda _: True)
            if message.kind != "here":
                raise InvalidRequest("That message is not for a hub.", rule="malformed")
            presence = parsed(Presence, message.body)
            if raw.subject != messages.presence(presence.seat):
                raise PermissionDenied("A machine speaks from another's seat.", rule="another_machine")
            machine = self.machines.receive(message.signer, presence)
        except LinkError as error:
            await self.refuse(error)
            return
        self._heard.set()
        self._heard = asyncio.Event()
        await self._check_all([waiting for waiting in self._waiting.values() if waiting.machine is machine])

    async def _receive_reply(self, raw: Msg) -> None:
        """Handle a reply, or a fragment of one. Only what the called machine signed for this call counts."""
        waiting = self._waiting.get(raw.subject.rpartition(".")[2])
        if waiting is None or waiting.answer.done():
            return
        if raw.subject != messages.reply(self.seat, waiting.machine.known.seat, waiting.call_id):
            await self.refuse(PermissionDenied("A machine answers from another's seat.", rule="another_machine"))
            return
        if not raw.data and (raw.headers or {}).get("Status") == "503":
            self._no_responder(waiting)
            return
        try:
            whole = waiting.parts.add(raw.data)
            if whole is None:
                return
            message = opened(whole, lambda signer: signer == waiting.machine.known.fingerprint)
            if message.kind != "answer":
                raise InvalidRequest("That message is not for a hub.", rule="malformed")
            answer = parsed(AnswerBody, message.body)
            is_ours = answer.to == self._signer.fingerprint and answer.key == waiting.key
            if not is_ours or answer.nonce not in waiting.nonces:
                raise PermissionDenied("An answer belongs to another call.", rule="replayed")
        except LinkError as error:
            await self.refuse(error)
            return
        waiting.answer.set_result(answer)

    def _no_responder(self, waiting: Waiting) -> None:
        name = waiting.machine.known.name
        if len(waiting.nonces) == 1:
            error = ProviderUnavailable(
                f"The server says that {name} is not connected; nothing reached it.", computer=name
            )
            waiting.answer.set_exception(error)
        else:
            waiting.away_since = waiting.away_since or time.monotonic()

    async def ask_history(self, machine: Machine, first: int) -> None:
        """Ask a machine to send its history again from this record on."""
        presence = machine.presence
        if presence is None or self.machines.state(machine) != "online":
            return
        body = {
            "to": machine.known.fingerprint, "epoch": presence.epoch, "nonce": secrets.token_hex(16),
            "key": secrets.token_hex(16), "at": time.time(), "until": time.time() + 60, "first": first,
        }  # fmt: skip
        await self.link.publish(messages.calls(machine.known.seat), self._signer.sealed("resend", body))

    def _refuse_soon(self, error: LinkError) -> None:
        task = asyncio.get_running_loop().create_task(self.refuse(error))
        self._refusing.add(task)
        task.add_done_callback(self._refusing.discard)

    async def refuse(self, error: LinkError) -> None:
        """Audit a rejected message in the hub's own history."""
        stranger = Principal("fleet:unknown", "peer", session="fleet", connection="fleet", grants=frozenset())
        await self._dispatcher.refuse({"op": "fleet.hub"}, stranger, error)


def _heeded(dial: Connect, waiting: Waiting) -> Connect:
    """Wrap a stream's connect function so that a permanent failure also ends the call it belongs to."""
    loop = asyncio.get_running_loop()
    problem = f"{waiting.machine.known.name} was lost while bytes were on their way"

    def connect(have: int, within_s: float) -> tuple[Pipe, int]:
        try:
            return dial(have, within_s)
        except TimeoutError:
            loop.call_soon_threadsafe(loop.call_later, _LAST_WORD_S, waiting.give_up, problem)
            raise

    return connect
