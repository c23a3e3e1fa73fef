"""Reading a request's body and writing an answer, bounded in size and in time."""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

import anyio
from pydantic_core import to_json

from computer_linker.transports.http.guards import MAX_BODY, Headers, Refused

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_BODY_DEADLINE_S = 30
_SECURITY_HEADERS = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
]


async def read_body(receive: Receive) -> bytes:
    """Read the whole body. Raises Refused for one that is too large or too slow."""
    chunks: list[bytes] = []
    size = 0
    with anyio.move_on_after(_BODY_DEADLINE_S) as deadline:
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refused(400, "The client left before its request was complete.")
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > MAX_BODY:
                raise Refused(413, f"A request body is at most {MAX_BODY} bytes.")
            chunks.append(chunk)
            if not message.get("more_body"):
                break
    if deadline.cancelled_caught:
        raise Refused(408, f"The request body did not arrive within {_BODY_DEADLINE_S} seconds.")
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def answer_json(
    send: Send, status: int, body: bytes | dict[str, Any], headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    """Send one JSON answer."""
    raw = body if isinstance(body, bytes) else to_json(body, by_alias=True)
    given = [(b"content-type", b"application/json"), (b"content-length", str(len(raw)).encode()), *_SECURITY_HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": given + (headers or [])})
    await send({"type": "http.response.body", "body": raw})


async def answer_empty(send: Send, status: int) -> None:
    """Send an answer without a body."""
    await send(
        {"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0"), *_SECURITY_HEADERS]}
    )
    await send({"type": "http.response.body", "body": b""})


def replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns the body again, then passes on real events (a disconnect)."""
    given = False

    async def again() -> dict[str, Any]:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return again


_KIND = b"application/x-www-form-urlencoded"
_MAX_FORM = 64 * 1024
_MAX_FIELDS = 200


def every_value(form: str) -> list[tuple[str, str]]:
    """Every field with its value, in order. Raises Refused for more fields than any of our forms has."""
    try:
        return parse_qsl(form, keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise Refused(400, "The form has too many fields.") from None


def single_values(query: str) -> tuple[dict[str, str], set[str]]:
    """The query's values, and the names of parameters given twice, which count as not given."""
    values: dict[str, str] = {}
    twice: set[str] = set()
    for name, value in every_value(query):
        if name in values:
            twice.add(name)
        values[name] = value
    return {name: value for name, value in values.items() if name not in twice}, twice


def check_form_headers(headers: Headers) -> None:
    """Refuse a body that is not declared as a form: requests that other sites can send without CORS preflight differ."""
    if headers.get(b"content-type", b"").split(b";")[0].strip().lower() != _KIND:
        raise Refused(415, "A form is sent here, as application/x-www-form-urlencoded, and nothing else.")


async def bounded_body(receive: Receive) -> bytes:
    """The body of a form. Raises Refused for one larger than any of our forms."""
    body = await read_body(receive)
    if len(body) > _MAX_FORM:
        raise Refused(413, "The form is too large.")
    return body
