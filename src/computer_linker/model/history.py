"""The history as every surface answers it: events, groups of them, and what can be done next. Names are those of the wire."""

from typing import Any, Literal, NotRequired, get_args

from typing_extensions import TypedDict

View = Literal["last", "timeline", "summary", "sessions", "connections", "failed_replay", "debug_bundle", "verify"]
VIEWS: tuple[str, ...] = get_args(View)


class HistoryApproval(TypedDict):
    """The person's answer that let an operation run, or refused it; `answer` is the id of the answer's own event."""

    said: str
    by: str
    way: str
    answer: str
    extent: str


class HistoryEvent(TypedDict):
    """One operation. `outcome` is done, failed, refused, running, unknown (the service died) or changed (tampered with)."""

    number: int | None
    operationId: str
    machineId: str | None
    startedAt: str
    durationMs: float | None
    scope: str
    op: str
    target: str | None
    commandPreview: str | None
    capability: str | None
    decision: str | None
    reason: str | None
    approval: HistoryApproval | None
    ok: bool | None
    outcome: str
    errorCode: str | None
    effect: str | None
    principal: str | None
    session: str | None
    connection: str | None
    client: str | None
    request: str | None
    boundary: str | None
    parent: str | None
    summary: dict[str, Any]
    machine: NotRequired[str]


class HistoryGroup(TypedDict):
    """Events that belong together; only the fields of its kind are there."""

    firstAt: str
    lastAt: str
    events: int
    failed: int
    unfinished: int
    client: str | None
    principal: str | None
    scopes: list[str]
    operations: list[str]
    session: NotRequired[str]
    connection: NotRequired[str]
    tunnel: NotRequired[str | None]
    sessions: NotRequired[list[str]]
    requests: NotRequired[list[str]]
    scope: NotRequired[str]
    processId: NotRequired[str]
    sessionId: NotRequired[str]


class HistoryCount(TypedDict):
    """How many events have one value."""

    name: str
    events: int
    failed: int


class HistorySummary(TypedDict):
    """The events in numbers, each list the most frequent first."""

    events: int
    failed: int
    refused: int
    unfinished: int
    firstAt: str | None
    lastAt: str | None
    operations: list[HistoryCount]
    clients: list[HistoryCount]
    scopes: list[HistoryCount]
    errors: list[HistoryCount]


class ReplayTemplate(TypedDict):
    """A failed request to send again; `requiresInput` names what the history did not keep."""

    operationId: str
    request: dict[str, Any]
    requiresInput: list[str]
    replayable: bool
    reason: str


class Suggestion(TypedDict):
    """What to do next about one event."""

    operationId: str
    op: str
    advice: str
    request: NotRequired[dict[str, Any]]
