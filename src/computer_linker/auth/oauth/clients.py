"""Client-id metadata documents: fetched from the https URL that is the client's id, guarded against SSRF."""

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
from computer_linker.http_client import Pinned, fetch

_MAX_BYTES = 5 * 1024
_DEADLINE_S = 3.0
_KEEP_S = 300.0
_MAX_AT_ONCE = 8
_ROUTED = ipaddress.ip_network("2000::/3")
"""The IPv6 range allocated to networks; other ranges include several encodings of IPv4 addresses."""


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
        # Own threads: a stranger chooses the name that is resolved, and a slow answer must block nothing else.
        self._resolver = ThreadPoolExecutor(2, "client-names")

    async def fetch(self, url: str) -> Client | None:
        """The client the document describes; None for any invalid document, or when too many are being fetched."""
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
        except (OSError, ValueError, RecursionError):
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
        answer = await fetch(url, seconds=_DEADLINE_S, max_bytes=_MAX_BYTES, pinned=Pinned(address, self._tls))
        if answer.status != 200:
            raise ValueError("no document")
        return answer.body

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
