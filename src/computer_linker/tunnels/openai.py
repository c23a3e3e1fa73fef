"""OpenAI's Secure MCP Tunnel: tunnel-client fetches the calls and sends the owner token; there is no public URL."""

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from computer_linker.config.schema import Config, TunnelName
from computer_linker.errors import ProviderUnavailable
from computer_linker.http_client import fetch
from computer_linker.tunnels.base import contract
from computer_linker.tunnels.program import Wanted, private_text
from computer_linker.tunnels.running import ProgramTunnel, Running

_PATH_NAME = "COMPUTER_LINKER_OPENAI_TUNNEL_CLIENT"
_LOOK_S = 0.25


class OpenAiTunnel(ProgramTunnel):
    """`tunnel-client run`. It runs only with the digest in the config; OpenAI's products find it by its tunnel id."""

    name: TunnelName = "openai"
    forwards_owner_token = True
    _tunnel_id: str | None = None
    _watch: asyncio.Task[None] | None = None
    _is_well = True
    contract = contract(
        "openai",
        "secure-mcp-tunnel",
        "tunnel-client run --control-plane.tunnel-id tunnel_... --mcp.server-url url=http://127.0.0.1:<port>/mcp",
        url_source="none",
        reach="provider",
        note="Clients use the tunnel id; no publicBaseUrl is needed.",
    )

    def wanted(self, config: Config) -> Wanted:
        settings = config.tunnel.openai
        # A path set only by the environment still needs the digest of the config.
        path = self.around.environment.get(_PATH_NAME) or settings.program
        hint = _start("--fetch-from RELEASE, or --tunnel-client PATH --sha256 DIGEST")
        return Wanted("tunnel-client", path or "", settings.sha256, hint)

    def status(self) -> dict[str, Any]:
        return {**super().status(), "tunnelId": self._tunnel_id}

    def command(self, config: Config, port: int) -> tuple[list[str], dict[str, str]]:
        settings = config.tunnel.openai
        if settings.tunnel_id is None:
            raise ProviderUnavailable("There is no tunnel id.", hint=_start("--tunnel-id tunnel_..."))
        if settings.sha256 is None:
            raise ProviderUnavailable(
                "tunnel-client runs only with a known SHA-256, and the config has none.",
                hint=_start("--fetch-from RELEASE, or --sha256 DIGEST as the publisher's SHA256SUMS.txt has it"),
            )
        if settings.api_key_file is None:
            raise ProviderUnavailable("There is no API key file.", hint=_start("--api-key-file FILE"))
        key = private_text(settings.api_key_file, "API key file", config)
        self._tunnel_id = settings.tunnel_id
        token = self.around.owner_token()
        if token is None:
            raise ProviderUnavailable(
                "The tunnel shows the owner token, and only its digest is kept.", hint="computer-linker token rotate"
            )
        header = "Authorization: env:COMPUTER_LINKER_AUTHORIZATION"
        arguments = [
            "run", "--control-plane.tunnel-id", settings.tunnel_id, "--control-plane.api-key", "env:CONTROL_PLANE_API_KEY",
            "--mcp.server-url", f"url=http://127.0.0.1:{port}/mcp",
            "--mcp.extra-headers", header, "--mcp.discovery-extra-headers", header,
            "--health.listen-addr", "127.0.0.1:0", "--health.url-file", os.fspath(self._health_file),
            "--log.format", "json", "--log.level", "warn",
        ]  # fmt: skip
        return arguments, {"CONTROL_PLANE_API_KEY": key, "COMPUTER_LINKER_AUTHORIZATION": f"Bearer {token}"}

    def read_line(self, line: str) -> None:
        """Ignore the line: readiness is polled at the program's health address."""

    async def connect(self, running: Running) -> None:
        asking = asyncio.create_task(self._poll_until_ready())
        try:
            await super().connect(running)
        finally:
            asking.cancel()

    async def expose(self, port: int) -> None:
        self._health_file.unlink(missing_ok=True)
        await super().expose(port)
        self._watch = asyncio.create_task(self._poll())

    def is_connected(self) -> bool:
        return self._is_well

    async def stop(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        await super().stop()

    async def _poll(self) -> None:
        while True:
            self._is_well = await self._is_ready()
            await asyncio.sleep(self.around.poll_s)

    async def _poll_until_ready(self) -> None:
        # It emits no event: readiness is a health endpoint.
        while not await self._is_ready():  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_S)
        self.connected.set()

    async def _is_ready(self) -> bool:
        with contextlib.suppress(OSError, ValueError):
            address = self._health_file.read_bytes()[:200].decode("ascii").strip()
            if urlsplit(address).hostname == "127.0.0.1":
                origin = f"http://{urlsplit(address).netloc}"
                return (await fetch(f"{origin}/readyz", seconds=2)).status == 200
        return False

    @property
    def _health_file(self) -> Path:
        return self.around.folder / "tunnel-client.health"


def _start(options: str) -> str:
    return f"computer-linker tunnel start openai {options}"
