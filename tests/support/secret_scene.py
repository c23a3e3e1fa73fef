"""A scope whose commands may use a secret at one host, beside a host that has none."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
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


@dataclass(frozen=True)
class Hosts:
    """The secret's host and another one, with the certificates that sign both."""

    authority: Authority
    host: NamedServer
    other: NamedServer


@contextmanager
def secret_hosts(folder: Path) -> Iterator[Hosts]:
    authority = Authority(folder)
    with named_server(authority.certificate(HOST)) as host, named_server(authority.certificate(OTHER)) as other:
        yield Hosts(authority, host, other)


@asynccontextmanager
async def secret_scene(tmp_path: Path, hosts: Hosts, *more: dict[str, Any]) -> AsyncIterator[SecretScene]:
    """The scene, with these further scopes."""
    network = [f"{HOST}:{hosts.host.port}=127.0.0.1", f"{OTHER}:{hosts.other.port}=127.0.0.1"]
    (tmp_path / "root").mkdir()
    scope = folder_scope(
        tmp_path / "root", allowedCommands=["*"], network=network, sandbox="required", secrets=["token"]
    )
    async with Road.open(tmp_path, [scope, *more]) as road:
        scene = SecretScene(road, hosts.host, hosts.other)
        trusted = hosts.authority.file.read_text()
        secret = StoredSecret(
            name="token", host=HOST, port=hosts.host.port, variable="TOKEN", authority=trusted, value=CANARY
        )
        scene.vault.add(secret, replace=False)
        yield scene
