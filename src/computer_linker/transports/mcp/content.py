"""Converts a reply to the JSON of an MCP tool result, serialized once as bytes.

The text always has the whole answer, so that a client can work from the text alone. `structuredContent` repeats it, except
beside an image (Codex would drop the image) and above 64 KB (it would double the message).
"""

import base64
from typing import Any

from pydantic_core import to_json

from computer_linker.model.envelope import Attachment, Reply, failure_of

STRUCTURED_LIMIT = 64 * 1024
REPLY_LIMIT = 8 * 1024 * 1024


def result_json(reply: Reply, *, always_structured: bool = False) -> bytes:
    """The members of a CallToolResult, without the surrounding braces."""
    body = to_json(reply.envelope, by_alias=True)
    failed = b"false" if reply.envelope.get("ok", True) else b"true"
    text = to_json(body.decode())
    if len(text) > REPLY_LIMIT:
        return result_json(_too_large(reply))
    parts = [b'"content":[{"type":"text","text":', text, b"}"]
    parts += [_image(attachment) for attachment in reply.attachments]
    parts.append(b"]")
    if always_structured or (not reply.attachments and len(body) <= STRUCTURED_LIMIT):
        parts += [b',"structuredContent":', body]
    parts += [b',"isError":', failed]
    whole = b"".join(parts)
    return whole if len(whole) <= REPLY_LIMIT else result_json(_too_large(reply))


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
