"""Client-id metadata documents: a client that names itself by an https URL, fetched without becoming anyone's proxy."""

import asyncio
import ipaddress
import json
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from computer_linker.auth.oauth.redirects import is_allowed_redirect
from computer_linker.auth.oauth.state import Client

_MAX_BYTES = 5 * 1024
_DEADLINE_S = 3.0
_KEEP_S = 300.0
_MAX_AT_ONCE = 8
_ROUTED = ipaddress.ip_network("2000::/3")
"""What of IPv6 is given out to networks; beside it lie ways to write an IPv4 address, any of them, as an IPv6 one."""


class ClientDocuments:
    """Fetches documents over https from public addresses only, pinned between check and connect, without redirects."""

    def __init__(
        self, tls: ssl.SSLContext | None = None, *, allow_private: bool = False, keep_s: float = _KEEP_S
    ) -> None:
        self._tls = tls
        self._allow_private = allow_private
        self._keep_s = keep_s
        self._kept: dict[str, tuple[float, Client]] = {}
        self._under_way = 0
        # Threads of its own: a stranger chooses the name that is looked up, and a slow answer must hold up nothing else.
        self._resolver = ThreadPoolExecutor(2, "client-names")

    async def fetch(self, url: str) -> Client | None:
        """The client the document describes; None for anything that is not plainly right, or too much at once."""
        kept = self._kept.get(url)
        if kept is not None and kept[0] > time.monotonic():
            return kept[1]
        if self._under_way >= _MAX_AT_ONCE:
            return None
        self._under_way += 1
        try:
            async with asyncio.timeout(_DEADLINE_S):
                body = await self._get(url)
            client = _client_of(url, json.loads(body))
        except (
            OSError,
            ValueError,
            TimeoutError,
            RecursionError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
        ):
            return None
        finally:
            self._under_way -= 1
        if client is not None:
            if len(self._kept) > 100:
                self._kept.clear()
            self._kept[url] = (time.monotonic() + self._keep_s, client)
        return client

    async def _get(self, url: str) -> bytes:
        if not url.isascii() or not url.isprintable() or " " in url:
            raise ValueError("not a URL to the letter")
        parts = urlsplit(url)
        if {".", ".."} & set(parts.path.split("/")):
            raise ValueError("a path that could be written shorter")
        if parts.scheme != "https" or not parts.hostname or parts.username or parts.fragment or parts.path in ("", "/"):
            raise ValueError("not a client-id metadata URL")
        address = await self._public_address(parts.hostname, parts.port or 443)
        tls = self._tls or ssl.create_default_context()
        reader, writer = await asyncio.open_connection(
            address, parts.port or 443, ssl=tls, server_hostname=parts.hostname, limit=_MAX_BYTES * 2
        )
        try:
            path = parts.path + (f"?{parts.query}" if parts.query else "")
            head = (
                f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
            )
            writer.write(head.encode("ascii"))
            await writer.drain()
            status = await reader.readuntil(b"\r\n\r\n")
            if not status.startswith(b"HTTP/1.1 200 "):
                raise ValueError("no document")
            body = await reader.read(_MAX_BYTES + 1)
            while not reader.at_eof() and len(body) <= _MAX_BYTES:
                body += await reader.read(_MAX_BYTES + 1 - len(body))
        finally:
            writer.close()
        if len(body) > _MAX_BYTES or b"transfer-encoding" in status.lower():
            raise ValueError("the document is too large or chunked")
        return body

    async def _public_address(self, host: str, port: int) -> str:
        """One address of the host. Every address it has must be public, so that no answer can point inside."""
        look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        found = await asyncio.get_running_loop().run_in_executor(self._resolver, look_up)
        addresses = [str(item[4][0]) for item in found]
        for address in addresses:
            if not self._allow_private and not is_public(address):
                raise ValueError("the host has an address that is not public")
        if not addresses:
            raise ValueError("the host has no address")
        return addresses[0]


def is_public(address: str) -> bool:
    """True for an address on the open internet that leads nowhere else: no translation or tunnel to an IPv4 address is in it."""
    found = ipaddress.ip_address(address.split("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and (found not in _ROUTED or found.sixtofour or found.teredo):
        return False
    return found.is_global and not found.is_multicast


def _client_of(url: str, document: Any) -> Client | None:
    if type(document) is not dict or document.get("client_id") != url:
        return None
    redirects = document.get("redirect_uris")
    if type(redirects) is not list or not redirects or not all(is_allowed_redirect(uri) for uri in redirects):
        return None
    name = document.get("client_name")
    return Client(url, name[:100] if isinstance(name, str) else urlsplit(url).netloc, redirects, time.time())
