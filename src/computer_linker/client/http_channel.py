"""The HTTP channel: one POST per request, answered as JSON or as server-sent events."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from computer_linker.client.channel import VERSION, ClientFailed, NotAuthorized, Report, report_progress, result_of
from computer_linker.http_client import new_client

if TYPE_CHECKING:
    import httpx2

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_REFUSALS = {401: "the service wants a valid token", 403: "the service refuses this client more than it was given"}


class HttpChannel:
    """Requests to one address."""

    def __init__(self, client: "httpx2.AsyncClient", url: str) -> None:
        self._client = client
        self._url = url
        self._numbers = 0

    @property
    def next_number(self) -> int:
        """The number the next request will have."""
        return self._numbers + 1

    async def request(self, method: str, params: dict[str, Any], report: Report | None) -> dict[str, Any]:
        """The result of one request."""
        import httpx2

        self._numbers += 1
        message = {"jsonrpc": "2.0", "id": self._numbers, "method": method, "params": params}
        headers = {"mcp-protocol-version": VERSION, "mcp-method": method}
        if "name" in params:
            headers["mcp-name"] = params["name"]
        try:
            async with self._client.stream("POST", self._url, json=message, headers=headers) as answer:
                if answer.status_code in _REFUSALS:
                    raise NotAuthorized(_REFUSALS[answer.status_code])
                return result_of(await _message_of(answer, report), method)
        except httpx2.TransportError as error:
            raise ClientFailed(f"{self._url} cannot be reached: {error}") from error


@asynccontextmanager
async def over_http(url: str, token: str | None) -> AsyncIterator[HttpChannel]:
    """Connect to a running service by its URL. A token is sent over TLS or loopback only."""
    import httpx2

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ClientFailed(f"{url} is not an address such as http://127.0.0.1:3939/mcp")
    is_local = parts.hostname in _LOOPBACK
    if token is not None and parts.scheme == "http" and not is_local:
        raise ClientFailed("a token is sent to another machine over https only")
    headers = {"accept": "application/json, text/event-stream"}
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    # Operations bound their own time; the caller's deadline bounds the wait.
    waiting = httpx2.Timeout(None, connect=30)
    # No proxy for loopback.
    async with new_client(headers=headers, timeout=waiting, use_environment=not is_local) as client:
        yield HttpChannel(client, url)


async def _message_of(answer: "httpx2.Response", report: Report | None) -> dict[str, Any]:
    """The message that answers the request; notifications before it are passed on."""
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        async for line in answer.aiter_lines():
            if line.startswith("data:") and line[5:].strip():
                message: dict[str, Any] = json.loads(line[5:])
                if "method" not in message:
                    return message
                report_progress(report, message)
        raise ClientFailed("the stream ended before the answer")
    body = await answer.aread()
    try:
        value = json.loads(body)
    except ValueError:
        raise ClientFailed(f"the service answered with status {answer.status_code} and no JSON") from None
    if not isinstance(value, dict) or not value.keys() & {"result", "error"} or value.get("jsonrpc") != "2.0":
        raise ClientFailed(f"the service answered with status {answer.status_code}: {str(value)[:200]}")
    return value
