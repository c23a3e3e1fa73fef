"""Commands that use a secret: real programs get a placeholder, and the host of the secret alone gets the secret."""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from computer_linker.vault.secret import StoredSecret
from computer_linker.vault.vault import Vault
from support.certificates import Authority
from support.named_server import NamedServer, named_server
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
HOST, OTHER = "api.example.org", "other.example.org"
CANARY = "tok_C4naryValue0123456789abcdefXYZ"


@dataclass
class Scene:
    """A scope that may use a secret at one host, and a second host with the same authority but without a secret."""

    road: Road
    host: NamedServer
    other: NamedServer

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.host.port}"

    async def run(self, *argv: str) -> dict[str, Any]:
        return await self.road.data("command.run", ".", input={"command": list(argv)}, options={"timeoutSeconds": 120})

    async def sh(self, script: str) -> dict[str, Any]:
        return await self.run("sh", "-c", script)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def servers(authority: Authority) -> Iterator[tuple[NamedServer, NamedServer]]:
    with named_server(authority.certificate(HOST)) as host, named_server(authority.certificate(OTHER)) as other:
        yield host, other


@pytest.fixture
async def scene(tmp_path: Path, authority: Authority, servers: tuple[NamedServer, NamedServer]) -> AsyncIterator[Scene]:
    host, other = servers
    network = [f"{HOST}:{host.port}=127.0.0.1", f"{OTHER}:{other.port}=127.0.0.1"]
    (tmp_path / "root").mkdir()
    scope = folder_scope(
        tmp_path / "root", allowedCommands=["*"], network=network, sandbox="required", secrets=["token"]
    )
    async with Road.open(tmp_path, [scope]) as road:
        secret = StoredSecret(
            name="token",
            host=HOST,
            port=host.port,
            variable="TOKEN",
            authority=authority.file.read_text(),
            value=CANARY,
        )
        road.app.dispatcher.services.use(Vault).add(secret, replace=False)
        yield Scene(road, host, other)


def sent(server: NamedServer) -> dict[str, str]:
    """The header fields of the newest request."""
    return server.seen[-1][2]


async def test_curl_sends_the_secret_by_its_placeholder(scene: Scene) -> None:
    ran = await scene.sh(f'echo "$TOKEN"; curl -sS -H "Authorization: Bearer $TOKEN" {scene.url}/reflect')
    placeholder, _, body = ran["stdout"].partition("\n")
    assert placeholder != CANARY and placeholder.startswith("tok_") and len(placeholder) == len(CANARY), ran
    assert sent(scene.host)["authorization"] == f"Bearer {CANARY}"
    assert json.loads(body)["authorization"] == f"Bearer {placeholder}"
    assert CANARY not in json.dumps(ran)
