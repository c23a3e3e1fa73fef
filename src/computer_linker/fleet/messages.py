"""The message bodies between hub and machines, each a closed schema inside a signed message, and their fragments."""

import re
import time
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationError, field_validator

from computer_linker.errors import InvalidRequest, PermissionDenied
from computer_linker.fleet.seal import MAX_MESSAGE
from computer_linker.fleet.settings import Facts, Fingerprint, PlainText, Seat
from computer_linker.model.base import Model
from computer_linker.model.principal import parse_far

_HEAD = 8
_MAX_PARTS = MAX_MESSAGE // 1024 + 1
_ROOM = 2048
"""Bytes of the server's message limit reserved for subject and headers."""


def split(raw: bytes, largest: int) -> list[bytes]:
    """Split a reply larger than the server's messages into numbered parts. The signature covers the whole."""
    size = max(1024, largest - _ROOM)
    pieces = [raw[at : at + size] for at in range(0, len(raw), size)] or [b""]
    count = len(pieces).to_bytes(4, "big")
    return [number.to_bytes(4, "big") + count + piece for number, piece in enumerate(pieces)]


class Parts:
    """Reassembles one reply. The server preserves the order; a part out of order resets it."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, raw: bytes) -> bytes | None:
        """Add a part; returns the whole once it is complete. Raises InvalidRequest for parts that do not fit."""
        number, count = int.from_bytes(raw[:4], "big"), int.from_bytes(raw[4:_HEAD], "big")
        if number == 0:
            self._pieces, self._size = [], 0
        self._size += len(raw)
        if (
            len(raw) < _HEAD
            or number != len(self._pieces)
            or number >= count
            or count > _MAX_PARTS
            or self._size > MAX_MESSAGE
        ):
            self._pieces, self._size = [], 0
            raise InvalidRequest("An answer came in parts that do not fit.", rule="malformed")
        self._pieces.append(raw[_HEAD:])
        if len(self._pieces) < count:
            return None
        whole, self._pieces, self._size = b"".join(self._pieces), [], 0
        return whole


SKEW_S = 60.0
"""The allowed difference between two machines' clocks."""
MAX_WITHIN_S = 3600.0
Handle = Annotated[str, Field(pattern=r"^[a-z0-9]{16,64}$")]
MachineId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._:@-]{0,127}$")]
"""An id that is safe in an address and on a terminal."""
FlowKind = Literal["open", "opened", "data", "taken", "lost"]
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
        """Raise PermissionDenied for a request outside its time window."""
        now = time.time()
        if now > self.until + SKEW_S:
            raise PermissionDenied("This request has expired.", rule="expired")
        if self.at > now + SKEW_S or not 0 < self.until - self.at <= MAX_WITHIN_S:
            raise PermissionDenied("The times of this request cannot be. Do the two clocks agree?", rule="clock")


class CallBody(Addressed):
    """A call; the reply's subject ends in `call_id`."""

    call_id: Handle
    call: dict[str, Any]
    stream: Handle | None = None
    """The handle of its byte stream, if it has one."""
    is_large: bool = False
    """True when the stream carries the call itself."""
    behalf: list[str] | None = None
    """The hub's client that it is for: an opaque id, and the name the client gives itself."""

    @field_validator("behalf")
    @classmethod
    def _read(cls, value: list[str] | None) -> list[str] | None:
        parse_far(value)
        return value


class FlowBody(Model):
    """One message of a stream. `attempt` numbers its connections, so that leftovers of an earlier one are detected."""

    to: Fingerprint
    stream: Handle
    attempt: Annotated[int, Field(ge=1, le=1_000_000)]
    what: FlowKind
    at: Annotated[int, Field(ge=0, le=1 << 60)]
    """The byte offset: sent before these, present, or acknowledged."""
    data: bytes = b""


class ResendBody(Addressed):
    """Send the history again from this record on."""

    first: Annotated[int, Field(ge=1, le=1 << 53)]


class HistoryBody(Model):
    """Records of a machine's history: each its seal and, where the hubs may see it, its bytes."""

    to: Fingerprint
    """The hub it is for: another one may have other permissions."""
    first: Annotated[int, Field(ge=1, le=1 << 53)]
    previous: bytes
    """The seal of the record before the first, so that none can be omitted between two batches."""
    lines: Annotated[list[list[bytes | None]], Field(max_length=5000)]
    after: Literal["more", "pruned", "joined"] = "more"
    """What preceded the first: more records for this hub, or none, because they were pruned or the hub was not allowed yet."""


class AnswerBody(Model):
    """The outcome of a call: its envelope as JSON, or why the machine did not dispatch it."""

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

    id: PlainText
    type: PlainText
    capabilities: Annotated[list[PlainText], Field(max_length=50)]


class Presence(Model):
    """A presence message: a machine is connected, stops or leaves."""

    machine_id: MachineId
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,39}$")]
    seat: Seat
    epoch: Handle
    link: Count
    """The number of its connection in this run."""
    number: Count
    """Grows with every presence message of this run."""
    at: Moment
    every: Annotated[float, Field(gt=0, le=600)]
    going: Literal["stays", "stops", "leaves"] = "stays"
    """Whether it stays, stops for now, or leaves the fleet."""
    facts: Facts = Facts()
    scopes: Annotated[dict[str, Annotated[list[SharedScope], Field(max_length=200)]], Field(max_length=50)] = {}
    """The scopes of each hub, by the hub's fingerprint."""
    proofs: Annotated[dict[str, str], Field(max_length=50)] = {}
    """Proof of an invitation, by the fingerprint of the hub that issued it."""
    history: Count = 0
    """The number of its newest record, so that a missing one is detected."""
    sent: Annotated[dict[str, Count], Field(max_length=50)] = {}
    """The number of the newest record that the server confirmed for each hub, by the hub's fingerprint."""


def parsed(kind: type[M], body: dict[str, Any]) -> M:
    """Parse the body of a message. Raises InvalidRequest when it does not match its schema."""
    try:
        return kind.from_wire(body)
    except ValidationError:
        raise InvalidRequest("A fleet message does not have its shape.", rule="malformed") from None


def moment(seconds: float | None) -> str | None:
    """A timestamp in the format shown to people and clients."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def plain_name(name: str) -> str:
    """Return a machine's name reduced to what an address may contain."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:40].strip("-.") or "computer"


# The NATS subjects of a fleet and the permissions on them. A `seat` is the token of one machine in its subjects.

PREFIX = "cl.v1"
ASK = f"{PREFIX}.ask"
"""A hub asks every machine to announce its presence."""
EVERY_PRESENCE = f"{PREFIX}.here.*"


def seat_of(fingerprint: str) -> str:
    """Return the default seat (subject token) of a machine or hub."""
    return fingerprint[:32]


def presence(seat: str) -> str:
    """The subject of a machine's presence messages."""
    return f"{PREFIX}.here.{seat}"


def calls(seat: str) -> str:
    """The subject of calls to a machine."""
    return f"{PREFIX}.call.{seat}"


def audit(hub: str, seat: str) -> str:
    """The subject of a machine's history for one hub; each hub may see a different part."""
    return f"{PREFIX}.audit.{hub}.{seat}"


def every_audit(hub: str) -> str:
    """The subject filter for all history sent to one hub."""
    return f"{PREFIX}.audit.{hub}.*"


def stream(hub: str) -> str:
    """The name of a hub's JetStream stream. Each hub has its own, so that an absent hub fills only that one."""
    return f"CL_AUDIT_{hub}"


def reply(hub: str, seat: str, call_id: str) -> str:
    """The subject of the reply to one call."""
    return f"{PREFIX}.reply.{hub}.{seat}.{call_id}"


def every_reply(hub: str) -> str:
    """The subject filter for all replies to one hub."""
    return f"{PREFIX}.reply.{hub}.>"


def flow(to: str, by: str, handle: str) -> str:
    """The subject of one stream's messages."""
    return f"{PREFIX}.flow.{to}.{by}.{handle}"


def every_flow(to: str) -> str:
    """The subject filter for all streams to one machine or hub."""
    return f"{PREFIX}.flow.{to}.*.*"


def inbox(seat: str) -> str:
    """The inbox prefix of the client library, per machine, so that permissions separate machines there too."""
    return f"_INBOX.{seat}"


def machine_permissions(seat: str) -> dict[str, list[str]]:
    """The permissions of a machine on the server: its own subjects only."""
    return {
        "publish": [presence(seat), audit("*", seat), f"{PREFIX}.reply.*.{seat}.>", flow("*", seat, "*")],
        "subscribe": [calls(seat), every_flow(seat), ASK, f"{inbox(seat)}.>"],
    }


def hub_permissions(hub: str) -> dict[str, list[str]]:
    """The permissions of a hub on the server."""
    own = stream(hub)
    store = [f"$JS.API.*.*.{own}", f"$JS.API.*.*.{own}.>", f"$JS.API.CONSUMER.*.*.{own}.>", f"$JS.ACK.{own}.>"]
    return {
        "publish": [f"{PREFIX}.call.*", flow("*", hub, "*"), ASK, *store],
        "subscribe": [EVERY_PRESENCE, every_reply(hub), every_flow(hub), f"{inbox(hub)}.>"],
    }
