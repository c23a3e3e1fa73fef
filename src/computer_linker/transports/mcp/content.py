"""Converts a reply to the members of an MCP tool result, serialized once as bytes, in one of two renderings.

`json`: the text always has the whole answer, so that a client can work from the text alone. `structuredContent` repeats it,
except beside an image (Codex would drop the image) and above 64 KB (it would double the message).
`model`: text for a model and no `structuredContent`, which some clients would show instead of the text.
"""

import base64
from collections.abc import Callable
from typing import Any

from pydantic_core import to_json

from computer_linker.model.envelope import Attachment, PreparedList, Reply, failure_of

META_ENVELOPE = "computer-linker/envelope"
STRUCTURED_LIMIT = 64 * 1024
REPLY_LIMIT = 8 * 1024 * 1024


def result_json(reply: Reply) -> bytes:
    """The members of a CallToolResult, without the surrounding braces."""
    body, text = _body(reply.envelope)
    failed = b"false" if reply.envelope.get("ok", True) else b"true"
    if len(text) > REPLY_LIMIT:
        return result_json(_too_large(reply))
    parts = [b'"content":[{"type":"text","text":', text, b"}"]
    parts += [_image(attachment) for attachment in reply.attachments]
    parts.append(b"]")
    if not reply.attachments and len(body) <= STRUCTURED_LIMIT:
        parts += [b',"structuredContent":', body]
    parts += [b',"isError":', failed]
    whole = b"".join(parts)
    return whole if len(whole) <= REPLY_LIMIT else result_json(_too_large(reply))


def _body(envelope: dict[str, Any]) -> tuple[bytes, bytes]:
    """The envelope as JSON, and that as a JSON string; a list that has both already is not serialized again."""
    ready = [(name, value) for name, value in envelope.items() if type(value) is PreparedList]
    if not ready:
        body = to_json(envelope, by_alias=True)
        return body, to_json(body.decode())
    rest = to_json({name: value for name, value in envelope.items() if type(value) is not PreparedList}, by_alias=True)
    begun = rest[:-1] + (b"," if len(rest) > 2 else b"")
    names = [to_json(name) for name, _ in ready]
    lists = b",".join(b"%b:%b" % (name, value.json) for name, (_, value) in zip(names, ready, strict=True))
    text = b",".join(b"%b:%b" % (_escaped(name), value.escaped) for name, (_, value) in zip(names, ready, strict=True))
    return begun + lists + b"}", b'"' + _escaped(begun) + text + b'}"'


def _escaped(json: bytes) -> bytes:
    """JSON as it is written inside a JSON string."""
    return to_json(json.decode())[1:-1]


def model_json(reply: Reply, text: bytes) -> bytes:
    """The members in the `model` rendering, without `_meta` (see `envelope_meta`)."""
    failed = b"true" if reply.envelope.get("ok") is False else b"false"
    parts = [b'"content":[{"type":"text","text":', to_json(text.decode("utf-8", "replace")), b"}"]
    parts += [_image(attachment) for attachment in reply.attachments]
    parts += [b'],"isError":', failed]
    whole = b"".join(parts)
    return whole if len(whole) <= REPLY_LIMIT else result_json(_too_large(reply))


def envelope_meta(envelope: dict[str, Any]) -> dict[str, Any]:
    """What a program needs of the envelope beside a text for a model: the id, the outcome, the error's code, the effect."""
    error = envelope.get("error")
    facts = {
        "operationId": envelope.get("operationId"),
        "ok": envelope.get("ok", True),
        "errorCode": error["code"] if isinstance(error, dict) else None,
        "effect": envelope.get("effect"),
    }
    return {name: value for name, value in facts.items() if value is not None}


def fit(text: bytes, cut: int, how_to_go_on: Callable[[int], str], most_lines: int | None = None) -> bytes:
    """The start and the end of a text that is longer than the cut, and between them how to read what was left out."""
    if len(text) <= cut and (most_lines is None or text.count(b"\n") < most_lines):
        return text
    note = how_to_go_on(len(text)).encode()
    room = max(0, cut - len(note) - 80)
    head = _to_line_end(text[: room * 3 // 4].decode("utf-8", "ignore").encode())
    if most_lines is not None:
        head = b"".join(head.splitlines(keepends=True)[: (most_lines - 4) * 3 // 4])
    tail = _from_line_start(text[max(len(head), len(text) - room // 4) :].decode("utf-8", "ignore").encode())
    if most_lines is not None:
        tail = b"".join(tail.splitlines(keepends=True)[-((most_lines - 4) // 4) :])
    left_out = len(text) - len(head) - len(tail)
    middle = f"\n[{left_out} bytes left out. {how_to_go_on(len(head))}]\n"
    return head + middle.encode() + tail


def _to_line_end(text: bytes) -> bytes:
    """The text up to its last whole line, unless that would leave out much."""
    end = text.rfind(b"\n") + 1
    return text[:end] if end > len(text) // 2 else text


def _from_line_start(text: bytes) -> bytes:
    """The text from its first whole line on, unless that would leave out much."""
    start = text.find(b"\n") + 1
    return text[start:] if start < len(text) // 2 else text


def _image(attachment: Attachment) -> bytes:
    data = base64.b64encode(attachment.data)
    return b',{"type":"image","mimeType":"%b","data":"%b"}' % (attachment.mime.encode(), data)


def _too_large(reply: Reply) -> Reply:
    """The last limit: operations bound their own answers, so this is our fault and reported as such."""
    envelope: dict[str, Any] = {
        key: value for key, value in reply.envelope.items() if key not in ("data", "warnings", "effect")
    }
    envelope["ok"] = False
    envelope["error"] = failure_of(
        "limit_exceeded",
        "The answer is larger than 8 MiB. Ask for less at a time: lower the limits in options, or use the cursor.",
        retryable=False,
        details={"limitBytes": REPLY_LIMIT},
    )
    if "effect" in reply.envelope:
        envelope["error"]["details"]["effect"] = reply.envelope["effect"]
    return Reply(envelope)
