"""One encoder for everything the history keeps: an event becomes one line of plain ASCII JSON."""

import json
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

from computer_linker.audit.redact import digest_of, fact, label, preview, reason, unknown_operation
from computer_linker.audit.secret import Key
from computer_linker.errors import UnknownOperation, UnknownScope
from computer_linker.model.event import Event

MAX_SUMMARY = 16
"""Facts kept of one operation; more would make the history a place for contents."""


def opening(event: Event, kind: str, key: Key) -> str:
    """An intent or a whole record, as the members of a JSON object (no braces, no number yet)."""
    parts = [
        f'"kind":"{kind}","operationId":{quoted(event.operation_id[:64])},"startedAt":{quoted(event.started_at[:40])}'
        f',"scope":{quoted(_scope(event, key))},"op":{quoted(_operation(event, key))}'
        f',"principal":{quoted(label(event.principal, key))},"session":{quoted(label(event.session, key))}'
        f',"connection":{quoted(label(event.connection, key))}'
    ]
    if event.client is not None:
        parts.append(f',"client":{quoted(label(event.client, key))}')
    if event.parent is not None:
        parts.append(f',"parent":{quoted(event.parent[:64])}')
    if event.target is not None:
        parts.append(f',"target":{quoted(preview(event.op, event.target, key))}')
    if event.capability is not None:
        parts.append(f',"capability":{quoted(event.capability[:200])}')
    if kind == "intent":
        parts.append(f',"decision":"{event.decision}"')
    else:
        parts.append(closing(event, key))
    return "".join(parts)


def closing(event: Event, key: Key) -> str:
    """What is known at the end: the outcome's members, each led by a comma."""
    parts = [f',"decision":"{event.decision}","ok":{"true" if event.ok else "false"}']
    if event.duration_ms is not None:
        parts.append(f',"durationMs":{event.duration_ms!r}')
    if event.reason is not None:
        parts.append(f',"reason":{quoted(reason(event.reason, key))}')
    if event.error_code is not None:
        parts.append(f',"errorCode":{quoted(event.error_code[:40])}')
    if event.effect is not None:
        parts.append(f',"effect":{quoted(event.effect[:40])}')
    if event.boundary is not None:
        parts.append(f',"boundary":{quoted(label(event.boundary, key))}')
    if event.summary:
        parts.append(f',"summary":{_facts(event.summary, key)}')
    return "".join(parts)


def outcome(event: Event, key: Key) -> str:
    """The outcome that joins an intent."""
    return f'"kind":"outcome","operationId":{quoted(event.operation_id[:64])}' + closing(event, key)


def left_out(principal: str, error_code: str, count: int) -> str:
    """How many refusals of one kind were counted instead of kept."""
    return f'"kind":"left_out","principal":{quoted(principal[:80])},"errorCode":"{error_code}","count":{count}'


def _scope(event: Event, key: Key) -> str:
    # What names no scope is whatever the caller sent.
    return digest_of(event.scope, key) if event.error_code == UnknownScope.code else label(event.scope, key)


def _operation(event: Event, key: Key) -> str:
    if event.error_code in (UnknownScope.code, UnknownOperation.code):
        return unknown_operation(event.op, key)
    return label(event.op, key)


def _facts(summary: dict[str, Any], key: Key) -> str:
    kept = list(summary.items())[:MAX_SUMMARY]
    return json.dumps(
        {name[:40]: fact(name, value, key) if isinstance(value, str) else _number(value) for name, value in kept},
        separators=(",", ":"),
    )


def _number(value: Any) -> int | float | bool | None:
    # NaN and the infinities are not JSON, and a number of a thousand digits is not a size.
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)) and abs(value) < 1 << 62:
        return value
    return None
