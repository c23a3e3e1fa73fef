"""Over HTTP: one POST a request, answered as JSON or as a stream of events."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from computer_linker.client.channel import VERSION, ClientFailed, NotAuthorized, Report, result_of, tell

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
    """A running service by its address. A token goes only where nobody on the way can read it."""
    import ssl

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
    # No proxy to this machine; but a certificate authority that this machine trusts is trusted here too.
    trusted = ssl.create_default_context() if is_local and parts.scheme == "https" else True
    async with httpx2.AsyncClient(headers=headers, timeout=waiting, trust_env=not is_local, verify=trusted) as client:
        yield HttpChannel(client, url)


async def _message_of(answer: "httpx2.Response", report: Report | None) -> dict[str, Any]:
    """The one message that answers; notifications before it are passed on."""
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        async for line in answer.aiter_lines():
            if line.startswith("data:") and line[5:].strip():
                message: dict[str, Any] = json.loads(line[5:])
                if "method" not in message:
                    return message
                tell(report, message)
        raise ClientFailed("the stream ended before the answer")
    body = await answer.aread()
    try:
        value = json.loads(body)
    except ValueError:
        raise ClientFailed(f"the service answered with status {answer.status_code} and no JSON") from None
    if not isinstance(value, dict) or not value.keys() & {"result", "error"} or value.get("jsonrpc") != "2.0":
        raise ClientFailed(f"the service answered with status {answer.status_code}: {str(value)[:200]}")
    return value
