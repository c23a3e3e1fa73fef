"""A scope whose commands may use a secret at one host, beside a host that has none."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from computer_linker.vault.secret import StoredSecret
from computer_linker.vault.vault import Vault
from support.canary import CANARY
from support.certificates import Authority
from support.named_server import NamedServer, named_server
from support.road import Road, folder_scope

HOST, OTHER = "api.example.org", "other.example.org"


@dataclass
class SecretScene:
    road: Road
    host: NamedServer
    other: NamedServer

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.host.port}"

    @property
    def vault(self) -> Vault:
        return self.road.app.services.use(Vault)

    async def run(self, *argv: str) -> dict[str, Any]:
        return await self.road.call("command.run", ".", input={"command": list(argv)}, options={"timeoutSeconds": 120})

    async def sh(self, script: str) -> dict[str, Any]:
        return await self.run("sh", "-c", script)


@asynccontextmanager
async def secret_scene(tmp_path: Path, *more: dict[str, Any], computer: Any = None) -> AsyncIterator[SecretScene]:
    """The scene, with these further scopes."""
    authority = Authority(tmp_path)
    with named_server(authority.certificate(HOST)) as host, named_server(authority.certificate(OTHER)) as other:
        network = [f"{HOST}:{host.port}=127.0.0.1", f"{OTHER}:{other.port}=127.0.0.1"]
        (tmp_path / "root").mkdir()
        scope = folder_scope(
            tmp_path / "root", allowedCommands=["*"], network=network, sandbox="required", secrets=["token"]
        )
        async with Road.open(tmp_path, [scope, *more], computer) as road:
            scene = SecretScene(road, host, other)
            trusted = authority.file.read_text()
            secret = StoredSecret(
                name="token", host=HOST, port=host.port, variable="TOKEN", authority=trusted, value=CANARY
            )
            scene.vault.add(secret, replace=False)
            yield scene
