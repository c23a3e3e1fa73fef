"""What hub and machines say to each other, each a closed shape inside a sealed message."""

import re
import time
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationError

from computer_linker.errors import InvalidRequest, PermissionDenied
from computer_linker.fleet.settings import Facts, Fingerprint, Seat, Word
from computer_linker.model.base import Model

SKEW_S = 60.0
"""How far two machines' clocks may be apart."""
MAX_WITHIN_S = 3600.0
Handle = Annotated[str, Field(pattern=r"^[a-z0-9]{16,64}$")]
MachineId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._:@-]{0,127}$")]
"""An id that can stand in an address and on a terminal."""
Said = Literal["open", "opened", "data", "taken", "lost"]
Moment = Annotated[float, Field(ge=0, le=1e11, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=1 << 53)]
M = TypeVar("M", bound=Model)


class Addressed(Model):
    """A request: for one machine, in one run of it, once, and for a limited time."""

    to: Fingerprint
    epoch: Handle
    nonce: Handle
    key: Handle
    at: Moment
    until: Moment

    def check_time(self) -> None:
        """Raises PermissionDenied for a request of another time than now."""
        now = time.time()
        if now > self.until + SKEW_S:
            raise PermissionDenied("This request has expired.", rule="expired")
        if self.at > now + SKEW_S or not 0 < self.until - self.at <= MAX_WITHIN_S:
            raise PermissionDenied("The times of this request cannot be. Do the two clocks agree?", rule="clock")


class CallBody(Addressed):
    """Run this call; `call_id` says where the answer goes."""

    call_id: Handle
    call: dict[str, Any]
    stream: Handle | None = None
    """The handle of the bytes that stream beside it, if any do."""
    is_large: bool = False
    """True when these bytes are the call."""


class FlowBody(Model):
    """One message of a stream: of one connection of it, so that what is left of an earlier one is told apart."""

    to: Fingerprint
    stream: Handle
    attempt: Annotated[int, Field(ge=1, le=1_000_000)]
    what: Said
    at: Annotated[int, Field(ge=0, le=1 << 60)]
    """How many bytes were sent before these, or are there, or were taken."""
    data: bytes = b""


class ResendBody(Addressed):
    """Send the history again from this record on."""

    first: Annotated[int, Field(ge=1, le=1 << 53)]


class HistoryBody(Model):
    """Records of a machine's history: each its seal and, where the hubs may see it, its bytes."""

    to: Fingerprint
    """The hub it is for: another one may not see as much."""
    first: Annotated[int, Field(ge=1, le=1 << 53)]
    previous: bytes
    """The seal of the record before the first, so that none can be left out between two batches."""
    lines: Annotated[list[list[bytes | None]], Field(max_length=5000)]
    after: Literal["more", "pruned", "joined"] = "more"
    """What came before the first: more records for this hub, or none, for they were pruned, or the hub was not allowed yet."""


class AnswerBody(Model):
    """What became of a call: its envelope as JSON, or why the machine did not take it to its dispatcher."""

    to: Fingerprint
    key: Handle
    nonce: Handle
    epoch: Handle
    envelope: bytes = b""
    attachments: Annotated[list[list[Any]], Field(max_length=200)] = []
    refused: str | None = None
    message: str = ""
    rule: str = ""


class SharedScope(Model):
    """A scope a hub may use."""

    id: Word
    type: Word
    capabilities: Annotated[list[Word], Field(max_length=50)]


class Here(Model):
    """A machine says that it is there, or that it goes."""

    machine_id: MachineId
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,39}$")]
    seat: Seat
    epoch: Handle
    link: Count
    """How often it has connected in this run."""
    number: Count
    """Rises with every such message of this run."""
    at: Moment
    every: Annotated[float, Field(gt=0, le=600)]
    going: Literal["stays", "stops", "leaves"] = "stays"
    """Whether it goes on, ends for now, or leaves the fleet."""
    facts: Facts = Facts()
    scopes: Annotated[dict[str, Annotated[list[SharedScope], Field(max_length=200)]], Field(max_length=50)] = {}
    """What each hub may use, by the hub's fingerprint."""
    proofs: Annotated[dict[str, str], Field(max_length=50)] = {}
    """Proof of an invitation, by the fingerprint of the hub that gave it."""
    history: Count = 0
    """The number of its newest record, so that a missing one is noticed."""
    sent: Annotated[dict[str, Count], Field(max_length=50)] = {}
    """The number of the newest record that the server said it has stored for each hub, by the hub's fingerprint."""


def parsed(kind: type[M], body: dict[str, Any]) -> M:
    """The body of a message. Raises InvalidRequest when it is not of its shape."""
    try:
        return kind.from_wire(body)
    except ValidationError:
        raise InvalidRequest("A fleet message does not have its shape.", rule="malformed") from None


def moment(seconds: float | None) -> str | None:
    """A time as everything that is shown to people and clients writes it."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def plain_name(name: str) -> str:
    """A machine's name as it can stand in an address."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:40].strip("-.") or "computer"
