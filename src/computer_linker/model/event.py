"""What the audit keeps of one operation: facts about it, never its contents."""

from dataclasses import dataclass, field
from typing import Literal

Decision = Literal["allow", "ask", "deny"]
Way = Literal["terminal", "notification", "page", "dialog"]
"""How a person answered: the owner's command line, a desktop notification, the approval page, the client's own dialog."""

Extent = Literal["once", "same", "shape"]
"""What a yes covers: this call, this exact request again, or requests of its shape."""


WITHDRAWN = "withdrawn"
"""Reason of an event that ended before anything began: its caller left, or it was stopped."""
NOT_SHOWN = "this one was not shown"
"""Part of the reason of an event that was refused without a question, after several noes to its caller."""
TOO_MANY = "too many requests of this client wait for an answer"
"""Part of the reason of an event that was refused without a question, for want of room."""


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's answer to the request of an event."""

    said: Literal["yes", "no"]
    by: str
    way: Way
    answer: str
    """The operation id of the answer's own event."""
    extent: Extent = "once"


@dataclass(slots=True)
class Event:
    """One operation in the history. `intent` is written before a side effect, the outcome joins it by id."""

    operation_id: str
    started_at: str
    scope: str
    op: str
    principal: str
    session: str
    connection: str
    client: str | None
    request: str | None = None
    """The id that a tunnel or proxy gave the request."""
    target: str | None = None
    """A preview that is safe to keep; see audit/redact.py."""
    command_preview: str | None = None
    """The command line, its secrets masked; see audit/command_line.py."""
    capability: str | None = None
    decision: Decision = "allow"
    reason: str | None = None
    approval: Approval | None = None
    """The answer that let it run, or refused it; None where no person answered."""
    boundary: str | None = None
    duration_ms: float | None = None
    ok: bool | None = None
    error_code: str | None = None
    effect: str | None = None
    summary: dict[str, str | int | float | bool | None] = field(default_factory=dict)
    """Sizes, counts and digests an operation chose to keep with `ctx.note(...)`."""
    parent: str | None = None
    """The batch this operation was part of."""
    steps_begun: int = 0
    steps_ended: int = 0
    """How many calls it made by then, and how many of those had ended."""
    intended: bool = False
    """True once the intent has been handed to the audit: the outcome joins it instead of standing alone."""
