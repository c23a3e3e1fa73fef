"""The hub: hears which machines are there, and carries calls to them and their answers back."""

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nats.aio.msg import Msg
from pydantic_core import from_json

from computer_linker.computer.remote.flow import Flow
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.errors import (
    Aborted,
    ExecutionFailed,
    InvalidRequest,
    LimitExceeded,
    LinkError,
    PermissionDenied,
    ProviderUnavailable,
    TimedOut,
    wire_codes,
)
from computer_linker.fleet import subjects
from computer_linker.fleet.large import TooLarge, streamed
from computer_linker.fleet.lasting import end, lasting
from computer_linker.fleet.link import FleetLink, Wants
from computer_linker.fleet.machines import Machine, Machines
from computer_linker.fleet.messages import AnswerBody, Here, moment, parsed
from computer_linker.fleet.parts import Parts
from computer_linker.fleet.seal import Signer, opened
from computer_linker.fleet.streams import Streams
from computer_linker.model.envelope import Attachment, Reply, error_in, is_envelope
from computer_linker.model.principal import Principal

log = logging.getLogger(__name__)

RESUME_S = 20.0
"""How long a machine or the server may be away in the middle of a call before its outcome counts as not known."""
_LOOK_S = 0.5
_LARGE_AT_ONCE = 4
_MAX_PRESENCE = 128 * 1024
_MIME = re.compile(r"[a-z]{1,20}/[a-z0-9.+-]{1,60}")
_MAX_ENVELOPE = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Beside:
    """The bytes beside a call: by which handle, and how to begin once the call is on its way."""

    handle: str
    begin: Callable[[], None]
    is_call: bool
    """Whether they are the call itself, which was too large for one message."""


@dataclass(slots=True)
class _Waiting:
    """One call under way."""

    machine: Machine
    key: str
    call_id: str
    until: float
    call: dict[str, Any]
    answer: "asyncio.Future[AnswerBody]"
    observes: bool
    beside: "_Beside | None"
    nonces: set[str] = field(default_factory=set)
    parts: Parts = field(default_factory=Parts)
    epoch: str = ""
    link: int = -1
    away_since: float | None = None


class Hub:
    """One hub on one server."""

    def __init__(self, dispatcher: Dispatcher, signer: Signer, machines: Machines, resume_s: float = RESUME_S) -> None:
        self._dispatcher, self._signer, self.machines = dispatcher, signer, machines
        self._resume_s = resume_s
        self.seat = subjects.seat_of(signer.fingerprint)
        self._waiting: dict[str, _Waiting] = {}
        self._heard = asyncio.Event()
        self._large = asyncio.Semaphore(_LARGE_AT_ONCE)
        self._lasting: list[asyncio.Task[None]] = []
        self._refusing: set[asyncio.Task[None]] = set()
        self.streams = Streams(signer, self.seat, self._refuse_soon)
        listens = {
            subjects.EVERY_PRESENCE: self._hear, subjects.every_reply(self.seat): self._take,
            self.streams.subject: self.streams.take,
        }  # fmt: skip
        self.link = FleetLink(machines.settings.place, subjects.inbox(self.seat), Wants(listens, self._up, self._down))
        machines.is_connected = lambda: self.link.is_up

    def start(self) -> None:
        """Begin to connect."""
        self.link.start()
        self._lasting = [lasting(self._watch, "the hub's watch")]

    async def aclose(self) -> None:
        """Let go; calls under way end as not known."""
        await end(self._lasting)
        for waiting in self._waiting.values():
            if not waiting.answer.done():
                waiting.answer.set_exception(_unknown(waiting, "The hub was stopped"))
        await self.link.aclose()

    async def call(
        self, machine: Machine, call: dict[str, Any], within_s: float, *, observes: bool, flow: Flow | None = None
    ) -> Reply:
        """Run one call there, with bytes beside it or not. What stays unanswered is unknown, never done or not done."""
        self._check_there(machine)
        if flow is not None:
            return await self._beside(machine, call, within_s, flow, observes=observes)
        try:
            return await self._called(machine, call, within_s, observes=observes)
        except TooLarge:
            async with self._large, streamed(call) as whole:
                return await self._beside(machine, None, within_s, whole, observes=observes)

    async def _beside(
        self, machine: Machine, call: dict[str, Any] | None, within_s: float, flow: Flow, *, observes: bool
    ) -> Reply:
        """Run a call with bytes beside it; without one, those bytes are the call."""
        handle, known = secrets.token_hex(16), machine.known
        try:
            with self.streams.dialling(self.link, handle, known.fingerprint, known.seat) as dial:
                beside = _Beside(handle, lambda: flow.carried_by(dial), is_call=call is None)
                reply = await self._called(machine, call or {}, within_s, observes=observes, beside=beside)
                if not reply.ok:
                    flow.fail(error_in(reply.envelope))
                return reply
        except LinkError as error:
            flow.fail(error)
            raise
        finally:
            flow.fail(Aborted("The call was stopped."))

    async def _called(
        self,
        machine: Machine,
        call: dict[str, Any],
        within_s: float,
        *,
        observes: bool,
        beside: "_Beside | None" = None,
    ) -> Reply:
        waiting = _Waiting(
            machine, secrets.token_hex(16), secrets.token_hex(16), time.time() + within_s, call,
            asyncio.get_running_loop().create_future(), observes, beside,
        )  # fmt: skip
        self._waiting[waiting.call_id] = waiting
        try:
            async with asyncio.timeout(within_s):
                await self._send(waiting)
                answer = await waiting.answer
                # Not with bytes beside it: the machine would go on in what may be another state of the file.
                if answer.rule == "restarted" and observes and beside is None:
                    await self._next_run(waiting)
                    waiting.answer = asyncio.get_running_loop().create_future()
                    await self._send(waiting)
                    answer = await waiting.answer
            return _reply(waiting, answer)
        except TimeoutError:
            problem = f"{machine.known.name} did not answer within {within_s:g} seconds"
            raise _late(waiting, problem, within_s) from None
        except asyncio.CancelledError:
            await self._cancel(waiting)
            raise
        finally:
            del self._waiting[waiting.call_id]

    def _check_there(self, machine: Machine) -> None:
        name, state = machine.known.name, self.machines.state(machine)
        if state == "unknown":
            raise ProviderUnavailable("The fleet's server cannot be reached; nothing was sent.", computer=name)
        if state != "online":
            raise ProviderUnavailable(
                f"{name} is not there; nothing was sent.", computer=name, state=state,
                lastSeenAt=moment(machine.known.last_seen_at),
            )  # fmt: skip

    async def _send(self, waiting: _Waiting) -> None:
        """Ask, or ask again: the same act under the same key, in a message of its own."""
        here = waiting.machine.here
        assert here is not None, "only a machine that is there is asked"
        nonce = secrets.token_hex(16)
        body = self._addressed(waiting, nonce) | {"callId": waiting.call_id, "call": waiting.call}
        if waiting.beside is not None:
            body |= {"stream": waiting.beside.handle, "isLarge": waiting.beside.is_call}
        sealed = self._signer.sealed("call", body)
        if len(sealed) > self.link.largest > 0:
            raise TooLarge
        waiting.nonces.add(nonce)
        waiting.epoch, waiting.link = here.epoch, here.link
        seat = waiting.machine.known.seat
        await self.link.publish(subjects.calls(seat), sealed, subjects.reply(self.seat, seat, waiting.call_id))
        if waiting.beside is not None:
            waiting.beside.begin()

    def _addressed(self, waiting: _Waiting, nonce: str) -> dict[str, Any]:
        here = waiting.machine.here
        assert here is not None, "only a machine that is there is asked"
        return {
            "to": waiting.machine.known.fingerprint, "epoch": waiting.epoch or here.epoch, "nonce": nonce,
            "key": waiting.key, "at": time.time(), "until": waiting.until,
        }  # fmt: skip

    async def _watch(self) -> None:
        """Nothing tells that a machine went silent, so this looks at the calls under way now and then."""
        while True:
            await asyncio.sleep(_LOOK_S)
            await self._look_at(list(self._waiting.values()))

    async def _look_at(self, calls: list[_Waiting]) -> None:
        for waiting in calls:
            if not waiting.answer.done() and waiting.nonces:
                try:
                    await self._look(waiting)
                except LinkError as error:
                    if not waiting.answer.done():
                        waiting.answer.set_exception(error)

    async def _look(self, waiting: _Waiting) -> None:
        """Ask again when a lost connection is back; give up when it stays lost."""
        machine = waiting.machine
        here, is_there = machine.here, self.machines.state(machine) == "online"
        if not is_there or here is None:
            waiting.away_since = waiting.away_since or time.monotonic()
            if time.monotonic() - waiting.away_since > self._resume_s:
                raise _unknown(waiting, f"{machine.known.name} was lost after the call was sent")
        elif here.epoch != waiting.epoch:
            raise _unknown(waiting, f"{machine.known.name} was started anew after the call was sent")
        elif waiting.away_since is not None or here.link != waiting.link:
            waiting.away_since = None
            try:
                await self._send(waiting)
            except (LinkError, TooLarge):
                # It was sent before, so this says nothing of its outcome: the next look tries again, or gives up as not known.
                waiting.away_since = time.monotonic()

    async def _cancel(self, waiting: _Waiting) -> None:
        sealed = self._signer.sealed("cancel", self._addressed(waiting, secrets.token_hex(16)))
        try:
            await self.link.publish(subjects.calls(waiting.machine.known.seat), sealed)
        except LinkError as error:
            log.info("a cancelled call could not be ended there: %s", error.message)

    async def _next_run(self, waiting: _Waiting) -> None:
        """Wait for the new run of a machine to say that it is there."""
        while waiting.machine.here is None or waiting.machine.here.epoch == waiting.epoch:
            await self._heard.wait()
        waiting.epoch = ""

    async def _up(self) -> None:
        self.streams.again()
        for waiting in self._waiting.values():
            # Whatever was on its way when the connection broke may be lost: ask again once the machine is heard.
            waiting.away_since = waiting.away_since or time.monotonic()
        await self.link.publish(subjects.ASK, b"")

    async def _down(self) -> None:
        self.streams.again()
        log.info("the fleet's server cannot be reached: %s", self.link.problem or "the connection ended")

    async def _hear(self, raw: Msg) -> None:
        """A machine says that it is there."""
        try:
            if len(raw.data) > _MAX_PRESENCE:
                raise InvalidRequest("A machine says too much of itself.", rule="oversized")
            message = opened(raw.data, lambda _: True)
            if message.kind != "here":
                raise InvalidRequest("That message is not for a hub.", rule="malformed")
            here = parsed(Here, message.body)
            if raw.subject != subjects.presence(here.seat):
                raise PermissionDenied("A machine speaks from another's seat.", rule="another_machine")
            machine = self.machines.hear(message.signer, here)
        except LinkError as error:
            await self.refuse(error)
            return
        self._heard.set()
        self._heard = asyncio.Event()
        await self._look_at([waiting for waiting in self._waiting.values() if waiting.machine is machine])

    async def _take(self, raw: Msg) -> None:
        """An answer, or a part of one. Only what the asked machine signed for this very call counts."""
        waiting = self._waiting.get(raw.subject.rpartition(".")[2])
        if waiting is None or waiting.answer.done():
            return
        if raw.subject != subjects.reply(self.seat, waiting.machine.known.seat, waiting.call_id):
            await self.refuse(PermissionDenied("A machine answers from another's seat.", rule="another_machine"))
            return
        if not raw.data and (raw.headers or {}).get("Status") == "503":
            self._nobody(waiting)
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

    def _nobody(self, waiting: _Waiting) -> None:
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
        here = machine.here
        if here is None or self.machines.state(machine) != "online":
            return
        body = {
            "to": machine.known.fingerprint, "epoch": here.epoch, "nonce": secrets.token_hex(16),
            "key": secrets.token_hex(16), "at": time.time(), "until": time.time() + 60, "first": first,
        }  # fmt: skip
        await self.link.publish(subjects.calls(machine.known.seat), self._signer.sealed("resend", body))

    def _refuse_soon(self, error: LinkError) -> None:
        task = asyncio.get_running_loop().create_task(self.refuse(error))
        self._refusing.add(task)
        task.add_done_callback(self._refusing.discard)

    async def refuse(self, error: LinkError) -> None:
        """What is not believed is an event of the hub's own history."""
        stranger = Principal("fleet:unknown", "peer", session="fleet", connection="fleet", grants=frozenset())
        await self._dispatcher.refuse({"op": "fleet.hub"}, stranger, error)


def _reply(waiting: _Waiting, answer: AnswerBody) -> Reply:
    machine = waiting.machine
    if answer.refused is not None:
        kind = wire_codes().get(answer.refused, ProviderUnavailable)
        may_be_done = answer.rule in ("restarted", "too_large") or kind.code in ("aborted", "conflict")
        effect = _effect(waiting) if may_be_done else {}
        raise kind(f"{machine.known.name}: {answer.message[:300]}", computer=machine.known.name, **effect)
    if len(answer.envelope) > _MAX_ENVELOPE:
        raise LimitExceeded(f"{machine.known.name} answered with more than a client can take; ask for less.")
    envelope = _envelope(answer.envelope)
    if envelope is None or not all(map(_is_attachment, answer.attachments)):
        raise ExecutionFailed(
            f"{machine.known.name} answered with something that is no envelope.",
            computer=machine.known.name,
            **_effect(waiting),
        )
    return Reply(envelope, [Attachment(mime, data) for mime, data in answer.attachments])


def _is_attachment(item: list[Any]) -> bool:
    return len(item) == 2 and type(item[0]) is str and _MIME.fullmatch(item[0]) is not None and type(item[1]) is bytes


def _envelope(raw: bytes) -> dict[str, Any] | None:
    """What a machine answered, if it has the shape of an envelope."""
    try:
        value = from_json(raw, allow_inf_nan=False)
    except ValueError:
        return None
    return value if is_envelope(value) else None


def _unknown(waiting: _Waiting, problem: str) -> ProviderUnavailable:
    return ProviderUnavailable(_not_known(waiting, problem), computer=waiting.machine.known.name, **_effect(waiting))


def _late(waiting: _Waiting, problem: str, within_s: float) -> TimedOut:
    name = waiting.machine.known.name
    return TimedOut(_not_known(waiting, problem), computer=name, seconds=within_s, **_effect(waiting))


def _not_known(waiting: _Waiting, problem: str) -> str:
    return (
        f"{problem}."
        if waiting.observes
        else f"{problem}. Whether it was done there is not known; its own history tells."
    )


def _effect(waiting: _Waiting) -> dict[str, str]:
    """What an error says of what was done: nothing where nothing could be."""
    return {} if waiting.observes else {"effect": "unverifiable"}
