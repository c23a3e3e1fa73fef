"""The MCP SDK's own client behind a real nginx with TLS: it registers, is approved, calls, asks for more, and refreshes."""

import json
from collections.abc import Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from support import nginx
from support.nginx import Front, proxying
from support.oauth import CALLBACK, Browser, code_from, consent
from support.service import TOKEN, Service, serving

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(nginx.program() is None, reason="not installed: nginx"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Front]]:
    folder = tmp_path_factory.mktemp("nginx")
    front = nginx.front(folder / "front")
    with (
        serving(folder, token=TOKEN, publicBaseUrl=front.base) as service,
        proxying(front, service.port),
    ):
        (service.root / "a.txt").write_text("hello")
        yield service, front


@dataclass
class Memory:
    """Where the SDK keeps what it got; every pair of tokens in turn."""

    pairs: list[OAuthToken] = field(default_factory=list)
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.pairs[-1] if self.pairs else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.pairs.append(tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Owner:
    """The person in front of the browser: gives what was asked for, in scope `app`."""

    def __init__(self, front: Front) -> None:
        self._browser = Browser(front.base, front.tls)
        self.asked: list[str] = []
        self._told: dict[str, str] = {}

    async def open(self, url: str) -> None:
        where = urlsplit(url)
        self.asked.append(url)
        groups = ["linker:read", "linker:write"] if "linker%3Awrite" in where.query else ["linker:read"]
        answer = await anyio.to_thread.run_sync(
            lambda: consent(self._browser, f"{where.path}?{where.query}", group=groups)
        )
        assert answer[1]["location"].startswith(CALLBACK)
        self._told = code_from(answer[1])

    async def came_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=self._told["code"], state=self._told["state"], iss=self._told["iss"])


@asynccontextmanager
async def signed_in(front: Front, mode: Any) -> Any:
    memory, owner = Memory(), Owner(front)
    about = OAuthClientMetadata.model_validate({"client_name": "SDK", "redirect_uris": [CALLBACK]})
    provider = OAuthClientProvider(f"{front.base}/mcp", about, memory, owner.open, owner.came_back)
    async with (
        httpx2.AsyncClient(auth=provider, verify=front.tls) as http,
        Client(streamable_http_client(f"{front.base}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client, memory, owner, provider


async def operate(client: Client, op: str, target: str, **rest: Any) -> dict[str, Any]:
    arguments = {"scope": "app", "op": op, "target": target, **rest}
    result = await client.call_tool("computer_operation", arguments)
    answer: dict[str, Any] = json.loads(result.content[0].text)  # type: ignore[union-attr]
    return answer


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_sdks_client_goes_the_whole_way(site: tuple[Service, Front], mode: str) -> None:
    service, front = site
    written = service.root / f"{mode}.txt"
    with anyio.fail_after(60):
        async with signed_in(front, mode) as (client, memory, owner, provider):
            assert (await operate(client, "file.read", "a.txt"))["data"]["content"] == "hello"
            assert len(owner.asked) == 1 and len(memory.pairs) == 1
            # More than was given: the SDK follows the challenge back to the owner, who gives it.
            answer = await operate(client, "file.write", written.name, input={"content": "x"})
            assert answer["ok"] is True and written.read_text() == "x"
            assert len(owner.asked) == 2
            # A token that is about to end is refreshed without anybody.
            provider.context.token_expiry_time = 1.0
            assert (await operate(client, "file.read", "a.txt"))["ok"] is True
            assert len(owner.asked) == 2 and len(memory.pairs) == 3
            assert len({pair.refresh_token for pair in memory.pairs}) == 3


async def test_progress_comes_through_while_the_call_still_runs(site: tuple[Service, Front], tmp_path: Path) -> None:
    """nginx gathers answers by default; ours ask it not to. A call that waits for us to hear it proves that we did."""
    service, front = site
    script = "import os, time\nprint('begun', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)"
    heard: list[str | None] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)
        (service.root / "go").touch()

    headers = {"authorization": f"Bearer {TOKEN}"}
    with anyio.fail_after(60):
        async with (
            httpx2.AsyncClient(headers=headers, verify=front.tls, timeout=240) as http,
            Client(streamable_http_client(f"{front.base}/mcp", http_client=http), mode="auto") as client,
        ):
            arguments = {
                "scope": "app", "op": "command.run", "target": ".", "input": {"command": ["python3", "-c", script]},
                "options": {"timeoutSeconds": 50},
            }  # fmt: skip
            result = await client.call_tool("computer_operation", arguments, progress_callback=on_progress)
    answer = json.loads(result.content[0].text)  # type: ignore[union-attr]
    assert (answer["ok"], answer["data"]["exitCode"]) == (True, 0), answer
    assert heard


@pytest.mark.parametrize(
    "path", ["/api/v1/control", "/api/v1/capabilities", "/healthz", "/approve", "/", "/mcp/../healthz"]
)
async def test_nothing_but_mcp_and_its_authorization_is_behind_the_public_name(
    site: tuple[Service, Front], path: str
) -> None:
    browser = Browser(site[1].base, site[1].tls)
    status, _, _ = browser.send("GET", path, Authorization=f"Bearer {TOKEN}")
    assert status == 404
