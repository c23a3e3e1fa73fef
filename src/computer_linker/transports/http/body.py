"""Reading a request's body and writing an answer, bounded in size and in time."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from pydantic_core import to_json

from computer_linker.transports.http.guards import MAX_BODY, Refused

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_BODY_DEADLINE_S = 30
_SECURITY_HEADERS = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
]


async def read_body(receive: Receive) -> bytes:
    """The whole body. Raises Refused for one that is too large or too slow."""
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
    """A `receive` that gives the body once more, then what really comes (a disconnect)."""
    given = False

    async def again() -> dict[str, Any]:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return again
