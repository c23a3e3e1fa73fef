"""Two real SSH servers with names of their own that accept one key, which the programs of a scope may use at the first."""

import getpass
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from computer_linker.vault.secret import StoredSecret
from computer_linker.vault.ssh_key import canonical_key, secret_parts
from computer_linker.vault.vault import Vault
from support.canary import is_key_in
from support.road import Road, folder_scope
from support.sshd import SshServer, make_key, prepare, running

GIT, OTHER = "git.example.org", "other.example.org"
USER = getpass.getuser()


@dataclass(frozen=True)
class SshHosts:
    """Both servers accept the key of `folder / "key"`."""

    folder: Path
    git: SshServer
    other: SshServer

    @property
    def key(self) -> Path:
        return self.folder / "key"

    def log(self, server: SshServer) -> str:
        return (server.folder / "sshd.log").read_text()

    def repository(self, name: str) -> Path:
        """A bare repository with one commit."""
        work, bare = self.folder / f"{name}-work", self.folder / f"{name}.git"
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(work)]
        subprocess.run(["git", "init", "-q", "-b", "main", str(work)], check=True)
        (work / "a.txt").write_text("here\n")
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-qm", "one"], check=True)
        subprocess.run(["git", "clone", "-q", "--bare", str(work), str(bare)], check=True)
        return bare


@contextmanager
def ssh_hosts(folder: Path) -> Iterator[SshHosts]:
    make_key(folder / "key")
    servers = [prepare(folder / name) for name in ("git", "other")]
    for server in servers:
        (server.folder / "authorized_keys").write_text((folder / "key.pub").read_text())
        with (server.folder / "sshd_config").open("a") as settings:
            settings.write("AllowAgentForwarding yes\nMaxStartups 100\nLogLevel VERBOSE\n")
    with running(servers[0]), running(servers[1]):
        yield SshHosts(folder, *servers)


@dataclass
class SshScene:
    road: Road
    hosts: SshHosts

    @property
    def vault(self) -> Vault:
        return self.road.app.services.use(Vault)

    @property
    def url(self) -> str:
        return f"ssh://{USER}@{GIT}:{self.hosts.git.port}"

    @property
    def seed(self) -> bytes:
        """The private key itself."""
        (found,) = secret_parts(canonical_key(self.hosts.key.read_text()))
        return found

    async def run(self, *argv: str) -> dict[str, Any]:
        """What a command gave; the private key is looked for in all of it."""
        options = {"timeoutSeconds": 120}
        envelope = await self.road.call("command.run", ".", input={"command": list(argv)}, options=options)
        assert not self.is_leaked(json.dumps(envelope).encode())
        assert envelope["ok"], envelope
        data: dict[str, Any] = envelope["data"]
        return data

    async def sh(self, script: str) -> dict[str, Any]:
        return await self.run("sh", "-c", script)

    def is_leaked(self, data: bytes) -> bool:
        return is_key_in(data, self.seed)


@asynccontextmanager
async def ssh_scene(tmp_path: Path, hosts: SshHosts, user: str = USER) -> AsyncIterator[SshScene]:
    network = [f"{GIT}:{hosts.git.port}=127.0.0.1", f"{OTHER}:{hosts.other.port}=127.0.0.1"]
    (tmp_path / "root").mkdir()
    scope = folder_scope(
        tmp_path / "root", allowedCommands=["*"], network=network, sandbox="required", secrets=["deploy"]
    )
    async with Road.open(tmp_path, [scope]) as road:
        secret = StoredSecret(
            name="deploy",
            scheme="ssh",
            host=GIT,
            port=hosts.git.port,
            user=user,
            host_keys=[" ".join((hosts.git.folder / "host.pub").read_text().split()[:2])],
            headers=[],
            variable="SSH_AUTH_SOCK",
            value=canonical_key(hosts.key.read_text()),
        )
        road.app.services.use(Vault).add(secret, replace=False)
        yield SshScene(road, hosts)
