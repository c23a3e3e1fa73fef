"""Bounded HTTP requests: one deadline for the whole exchange, a size limit, no redirects, no proxy unless asked for.

httpx2 is imported on first use: it takes 80 ms, and most runs of the service never send a request.
"""

import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode, urlsplit

if TYPE_CHECKING:
    import httpx2

MAX_BYTES = 65_536


class RequestFailed(OSError):
    """No usable response arrived; `kind` is the step that failed."""

    def __init__(self, kind: Literal["name", "tls", "timeout", "size", "connection"], message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Response:
    """A response read to its end. Header names are lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Pinned:
    """The address to connect to in place of the URL's host; the certificate and Host header stay those of the host."""

    address: str
    tls: ssl.SSLContext | None = None


async def fetch(
    url: str,
    *,
    seconds: float,
    max_bytes: int = MAX_BYTES,
    method: str = "GET",
    json: Any = None,
    form: Sequence[tuple[str, str]] | None = None,
    content: bytes | str | None = None,
    headers: Mapping[str, str] | None = None,
    pinned: Pinned | None = None,
) -> Response:
    """Send one request and return the response. Raises RequestFailed."""
    import anyio
    import httpx2

    given = {"accept": "application/json", "accept-encoding": "identity", "connection": "close", **(headers or {})}
    if form is not None:
        content, given["content-type"] = urlencode(form), "application/x-www-form-urlencoded"
    target, extensions = httpx2.URL(url), {}
    if pinned is not None:
        parts = urlsplit(url)
        given["host"] = parts.netloc
        target = target.copy_with(host=pinned.address)
        # The request line carries the URL as it was checked, not as a library would normalise it.
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        extensions = {"sni_hostname": parts.hostname, "target": path.encode("ascii")}
    try:
        with anyio.fail_after(seconds):
            async with (
                new_client(timeout=seconds, tls=_tls(url, pinned)) as client,
                client.stream(
                    method, target, content=content, json=json, headers=given, extensions=extensions
                ) as answer,
            ):
                body = await _body(answer, max_bytes)
                return Response(
                    answer.status_code, {name.lower(): value for name, value in answer.headers.items()}, body
                )
    except RequestFailed:
        raise
    except (TimeoutError, httpx2.TimeoutException) as error:
        raise RequestFailed("timeout", f"no response within {seconds:g} seconds") from error
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise _failure(error) from error


def fetch_now(url: str, **options: Any) -> Response:
    """`fetch` for code without an event loop."""
    import anyio

    return anyio.run(partial(fetch, url, **options))


def new_client(
    *,
    timeout: "httpx2.Timeout | float",
    tls: ssl.SSLContext | None = None,
    headers: Mapping[str, str] | None = None,
    use_environment: bool = False,
) -> "httpx2.AsyncClient":
    """Return a client that follows no redirects. `use_environment` takes proxies from the environment."""
    import httpx2

    # The default context trusts the certificate authorities of this machine.
    verify = True if use_environment else tls or ssl.create_default_context()
    return httpx2.AsyncClient(headers=headers, timeout=timeout, trust_env=use_environment, verify=verify)


def _tls(url: str, pinned: Pinned | None) -> ssl.SSLContext | None:
    # Loading the certificate authorities takes tens of milliseconds, which plain HTTP need not wait for.
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if url.startswith("http:") else pinned.tls if pinned else None


async def _body(answer: "httpx2.Response", max_bytes: int) -> bytes:
    # Raw, so that a small compressed body cannot become a large one.
    body = bytearray()
    async for piece in answer.aiter_raw():
        body += piece
        if len(body) > max_bytes:
            raise RequestFailed("size", f"the response has more than {max_bytes} bytes")
    return bytes(body)


def _failure(error: Exception) -> RequestFailed:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, socket.gaierror):
            return RequestFailed("name", "the name is not known")
        if isinstance(cause, ssl.SSLError):
            return RequestFailed("tls", str(getattr(cause, "verify_message", None) or cause.reason or cause))
        cause = cause.__cause__ or cause.__context__
    return RequestFailed("connection", str(error) or type(error).__name__)
