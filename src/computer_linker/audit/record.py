"""One encoder for everything the history keeps: an event becomes one line of plain ASCII JSON."""

import re
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

from computer_linker.audit.command_line import MAX_PREVIEW
from computer_linker.audit.redact import (
    client_name,
    digest_of,
    escaped,
    fact,
    is_digest,
    label,
    preview,
    reason,
    unknown_operation,
)
from computer_linker.audit.secret import Key
from computer_linker.errors import UnknownOperation, UnknownScope
from computer_linker.model.event import Approval, Event

_LARGEST = 1 << 62
_REQUEST = re.compile(r"[0-9a-f]{16}(?:-[A-Z]{3})?\Z|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
"""A ray id of Cloudflare, or a UUID."""
MAX_SUMMARY = 16
"""Most facts kept per operation; more would let operations store contents in the history."""


def opening(event: Event, kind: str, key: Key) -> str:
    """An intent or a whole record, as the members of a JSON object (no braces, no number yet)."""
    known = event.error_code not in (UnknownScope.code, UnknownOperation.code)
    names = _names if known else _names.__wrapped__
    parts = [
        f'"kind":"{kind}","operationId":{quoted(event.operation_id[:64])},"startedAt":{quoted(event.started_at[:40])}',
        names(
            event.scope if event.error_code != UnknownScope.code else digest_of(event.scope, key),
            event.op if known else unknown_operation(event.op, key),
            event.principal,
            event.session,
            event.connection,
            event.client,
            event.capability,
            key,
        ),
    ]
    if event.parent is not None:
        parts.append(f',"parent":{quoted(event.parent[:64])}')
    if event.request is not None and _REQUEST.match(event.request):
        parts.append(f',"request":"{event.request}"')
    if event.target is not None:
        parts.append(f',"target":{quoted(preview(event.op, event.target, key))}')
    if event.approval is not None:
        parts.append(_approved(event.approval, key))
    if event.command_preview is not None:
        parts.append(f',"commandPreview":{quoted(event.command_preview[:MAX_PREVIEW])}')
    parts.append(f',"decision":"{event.decision}"' if kind == "intent" else closing(event, key))
    return "".join(parts)


@lru_cache(maxsize=1024)
def _names(
    scope: str,
    op: str,
    principal: str,
    session: str,
    connection: str,
    client: str | None,
    capability: str | None,
    key: Key,
) -> str:
    """Return the members that are the same for many calls of one session."""
    text = (
        f',"scope":{quoted(_known(scope, key))},"op":{quoted(_known(op, key))},"principal":{quoted(label(principal, key))}'
        f',"session":{quoted(label(session, key))},"connection":{quoted(label(connection, key))}'
    )
    if client is not None:
        text += f',"client":{quoted(client_name(client, key))}'
    if capability is not None:
        text += f',"capability":{quoted(capability[:200])}'
    return text


def _known(name: str, key: Key) -> str:
    # A name that does not exist here was replaced by a digest already.
    if not name or is_digest(name):
        return name
    if not name.startswith("["):
        return label(name, key)
    # A query for machines, such as [os=linux has=docker]/app: kept when it is as plain as a name.
    wanted, bracket, scope = name[1:].partition("]")
    plain = f"{wanted.replace('=', ':')}{scope}"
    return name if bracket and label(plain, key) == plain else digest_of(name, key)


def closing(event: Event, key: Key) -> str:
    """Return the outcome's members, each preceded by a comma."""
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
        # The service's own text, so it is kept as it is.
        parts.append(f',"boundary":{quoted(escaped(event.boundary)[:MAX_PREVIEW])}')
    if event.summary:
        parts.append(f',"summary":{_facts(event.summary, key)}')
    return "".join(parts)


def _approved(given: Approval, key: Key) -> str:
    return (
        f',"approval":{{"said":"{given.said}","by":{quoted(label(given.by, key))},"way":"{given.way}",'
        f'"answer":{quoted(given.answer[:64])},"extent":"{given.extent}"}}'
    )


def outcome(event: Event, key: Key) -> str:
    """The outcome that joins an intent."""
    return f'"kind":"outcome","operationId":{quoted(event.operation_id[:64])}' + closing(event, key)


def left_out(principal: str, error_code: str, count: int) -> str:
    """Return the record for refusals of one kind that were only counted."""
    return f'"kind":"left_out","principal":{quoted(principal[:80])},"errorCode":"{error_code}","count":{count}'


def _facts(summary: dict[str, Any], key: Key) -> str:
    kept = list(summary.items())[:MAX_SUMMARY]
    return "{" + ",".join([f"{quoted(name[:40])}:{_fact(name, value, key)}" for name, value in kept]) + "}"


def _fact(name: str, value: Any, key: Key) -> str:
    if type(value) is int and -_LARGEST < value < _LARGEST:
        return str(value)
    if isinstance(value, str):
        return quoted(fact(name, value, key))
    if isinstance(value, bool):
        return "true" if value else "false"
    # NaN and the infinities are not JSON, and a number of a thousand digits is not a size.
    return repr(value) if isinstance(value, float) and -_LARGEST < value < _LARGEST else "null"
