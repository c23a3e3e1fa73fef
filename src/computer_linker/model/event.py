"""What the audit keeps of one operation: facts about it, never its contents."""

from dataclasses import dataclass, field
from typing import Literal

Decision = Literal["allow", "ask", "deny"]


@dataclass(slots=True)
class Event:
    """One operation as the history tells it. `intent` is written before a side effect, the outcome joins it by id."""

    operation_id: str
    started_at: str
    scope: str
    op: str
    principal: str
    session: str
    connection: str
    client: str | None
    target: str | None = None
    """A preview that is safe to keep; see audit/redact.py."""
    capability: str | None = None
    decision: Decision = "allow"
    reason: str | None = None
    boundary: str | None = None
    duration_ms: float | None = None
    ok: bool | None = None
    error_code: str | None = None
    effect: str | None = None
    summary: dict[str, str | int | float | bool | None] = field(default_factory=dict)
    """Sizes, counts and digests an operation chose to keep with `ctx.note(...)`."""
    parent: str | None = None
    """The batch this operation was part of."""
    intended: bool = False
    """True once the intent has been handed to the audit: the outcome joins it instead of standing alone."""
