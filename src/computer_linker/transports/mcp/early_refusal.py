"""The result of a tool call that the stdio shim refuses because no service could start, in the form that the service gives it."""

from datetime import UTC, datetime
from typing import Any

from pydantic_core import to_json

from computer_linker.errors import ProviderUnavailable
from computer_linker.model.envelope import Reply, error_object
from computer_linker.model.ids import new_ulid
from computer_linker.transports.mcp.content import META_ENVELOPE, envelope_meta, model_json, result_json

_MAX_NAME = 64


def refused_call(params: Any, reason: str, hint: str, *, render: str, is_modern: bool) -> bytes:
    """The result object; nothing was done, and no history has this operation."""
    named = params if type(params) is dict else {}
    given = named["arguments"] if type(named.get("arguments")) is dict else {}
    envelope = {
        "ok": False,
        "operationId": new_ulid(),
        "scope": _name(given.get("scope")),
        "op": _name(given.get("op", named.get("name"))),
        "startedAt": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "durationMs": 0,
        "error": error_object(ProviderUnavailable(reason, hint=hint)),
    }
    reply = Reply(envelope)
    complete = b',"resultType":"complete"' if is_modern else b""
    if render == "json":
        return b"{" + result_json(reply) + complete + b"}"
    text = f"{ProviderUnavailable.code}: {reason}\nhint: {hint}".encode()
    meta = to_json({META_ENVELOPE: envelope_meta(envelope)})
    return b"{" + model_json(reply, text) + complete + b',"_meta":' + meta + b"}"


def _name(value: Any) -> str:
    return value[:_MAX_NAME] if type(value) is str else ""
