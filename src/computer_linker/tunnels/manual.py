"""The owner's own reverse proxy: nothing is run here, the configured public URL is probed."""

import asyncio
import contextlib
import json
from typing import Any
from urllib.parse import urlsplit

from computer_linker.config.schema import TunnelName
from computer_linker.errors import ExecutionFailed, ProviderUnavailable
from computer_linker.http_client import RequestFailed, fetch
from computer_linker.tunnels.base import Detected, Surroundings, contract

_METADATA = "/.well-known/oauth-protected-resource/mcp"
_SECONDS = 10.0
_SELDOM = 6
"""Probed less often than a program on this machine: the probe goes over the network."""


class ManualProxy:
    """The owner's proxy at `publicBaseUrl`. It is open when it answers as this service would under that name."""

    name: TunnelName = "manual"
    forwards_owner_token = False
    contract = contract(
        "manual",
        "proxy",
        "(your own reverse proxy)",
        url_source="config",
        reach="internet",
        note="publicBaseUrl is the address.",
    )

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._url: str | None = None
        self._closed = asyncio.Event()
        self._seen = ""

    def detect(self) -> Detected:
        url = self._around.config().public_base_url
        if url is None or not url.startswith("https://"):
            problem = "There is no public address." if url is None else "The public address is not https."
            return Detected("manual", False, None, problem, "computer-linker config set publicBaseUrl https://...")
        return Detected("manual", True)

    async def expose(self, port: int) -> None:
        found = self.detect()
        if found.problem is not None:
            raise ProviderUnavailable(found.problem, hint=found.remedy)
        self._url = (self._around.config().public_base_url or "").rstrip("/")
        await check_address(self._url)

    def public_url(self) -> str | None:
        return self._url

    def status(self) -> dict[str, Any]:
        return {"pid": None, "pidStarted": None, "output": [self._seen] if self._seen else []}

    def is_connected(self) -> bool:
        return True

    async def ended(self) -> str:
        """Probe the address periodically; returns when it no longer leads here."""
        while not self._closed.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closed.wait(), self._around.poll_s * _SELDOM)
                break
            try:
                await check_address(self._url or "")
            except ExecutionFailed as error:
                self._seen = error.message
                return error.message
        return "It was closed."

    async def stop(self) -> None:
        self._closed.set()


async def check_address(url: str) -> None:
    """Probe whether a public URL leads to a Computer Linker of that name. Raises ExecutionFailed naming the hop that fails."""
    host = urlsplit(url).hostname
    try:
        answer = await fetch(f"{url}{_METADATA}", seconds=_SECONDS)
    except RequestFailed as error:
        failures = {"name": f"The name {host} is not known.", "tls": f"TLS with {host} fails: {error}."}
        raise ExecutionFailed(failures.get(error.kind, f"{host} does not answer: {error}.")) from error
    if answer.status == 421:
        raise ExecutionFailed("The service does not answer to that name: the proxy must pass the Host header on.")
    if answer.status != 200:
        raise ExecutionFailed(f"The address answers with status {answer.status}: the proxy or tunnel leads elsewhere.")
    try:
        resource = json.loads(answer.body).get("resource")
    except (ValueError, AttributeError):
        resource = None
    if resource != f"{url.lower()}/mcp":
        raise ExecutionFailed("Another service answers at that address.")
