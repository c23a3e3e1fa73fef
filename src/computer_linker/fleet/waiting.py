"""A call in flight to a machine of the fleet, and the error or reply it ends with."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json

from computer_linker.errors import ExecutionFailed, LimitExceeded, ProviderUnavailable, TimedOut, wire_codes
from computer_linker.fleet.machines import Machine
from computer_linker.fleet.messages import AnswerBody, Parts
from computer_linker.model.envelope import Attachment, Reply, is_envelope
from computer_linker.model.principal import FarClient

_MAX_ENVELOPE = 8 * 1024 * 1024
_MIME = re.compile(r"[a-z]{1,20}/[a-z0-9.+-]{1,60}")


@dataclass(frozen=True, slots=True)
class SideStream:
    """The byte stream of a call: its handle, and how to start it once the call is sent."""

    handle: str
    begin: Callable[["Waiting"], None]
    is_call: bool
    """Whether the stream carries the call itself, which was too large for one message."""


@dataclass(slots=True)
class Waiting:
    """One call in flight."""

    machine: Machine
    key: str
    call_id: str
    until: float
    call: dict[str, Any]
    answer: "asyncio.Future[AnswerBody]"
    observes: bool
    beside: SideStream | None
    far: FarClient | None = None
    nonces: set[str] = field(default_factory=set)
    parts: Parts = field(default_factory=Parts)
    epoch: str = ""
    link: int = -1
    away_since: float | None = None

    def give_up(self, problem: str) -> None:
        """End it with an unknown outcome, unless it has been answered."""
        if not self.answer.done():
            self.answer.set_exception(unknown(self, problem))


def reply_of(waiting: Waiting, answer: AnswerBody) -> Reply:
    """Return the reply of a machine. Raises LinkError for a refusal, and for an invalid reply."""
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
    """Parse a machine's answer, if it has the shape of an envelope."""
    try:
        value = from_json(raw, allow_inf_nan=False)
    except ValueError:
        return None
    return value if is_envelope(value) else None


def unknown(waiting: Waiting, problem: str) -> ProviderUnavailable:
    """Return the error for a call without a reply."""
    return ProviderUnavailable(_not_known(waiting, problem), computer=waiting.machine.known.name, **_effect(waiting))


def late(waiting: Waiting, problem: str, within_s: float) -> TimedOut:
    """Return the error for a call past its deadline."""
    name = waiting.machine.known.name
    return TimedOut(_not_known(waiting, problem), computer=name, seconds=within_s, **_effect(waiting))


def _not_known(waiting: Waiting, problem: str) -> str:
    return (
        f"{problem}."
        if waiting.observes
        else f"{problem}. Whether it was done there is not known; its own history tells."
    )


def _effect(waiting: Waiting) -> dict[str, str]:
    """Return the effect field of an error: empty for a call that only observes."""
    return {} if waiting.observes else {"effect": "unverifiable"}
