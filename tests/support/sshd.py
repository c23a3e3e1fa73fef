"""A real sshd on loopback with keys and a config of its own, for a user who may open one port and nothing else."""

import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.service import wait_for

RESTRICTED = (
    'restrict,port-forwarding,permitlisten="127.0.0.1:{port}",permitopen="127.0.0.1:1",command="/usr/sbin/nologin"'
)
"""What the how-to page puts before the key on the server."""


def program() -> str | None:
    """sshd, wherever Debian puts it."""
    return shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/sbin")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@dataclass(frozen=True)
class SshServer:
    """Where sshd is, the key it accepts, and the one port that key may open."""

    folder: Path
    port: int
    remote_port: int

    @property
    def key(self) -> Path:
        return self.folder / "id"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    @property
    def destination(self) -> str:
        return f"{getpass.getuser()}@127.0.0.1"

    @property
    def settings(self) -> dict[str, str | int]:
        """The `ssh` part of the tunnel's config."""
        return {
            "program": shutil.which("ssh") or "/usr/bin/ssh", "destination": self.destination, "port": self.port,
            "remotePort": self.remote_port, "identityFile": str(self.key), "knownHosts": str(self.known_hosts),
        }  # fmt: skip

    def trust_another_key(self) -> None:
        """Have the file of known hosts name a key the server does not have."""
        make_key(self.folder / "other")
        public = (self.folder / "other.pub").read_text().split()
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {public[0]} {public[1]}\n")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """The system's ssh with the same key, for what it must not be able to do."""
        options = ["-F", "none", "-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={self.known_hosts}"]
        command = ["ssh", *options, "-i", str(self.key), "-p", str(self.port), self.destination, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def make_key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True, timeout=30)


def prepare(folder: Path) -> SshServer:
    """Keys, the file of known hosts and the config of a server that is not started yet."""
    folder.mkdir(mode=0o700, parents=True)
    server = SshServer(folder, free_port(), free_port())
    make_key(folder / "host")
    make_key(server.key)
    public = (folder / "host.pub").read_text().split()
    server.known_hosts.write_text(f"[127.0.0.1]:{server.port} {public[0]} {public[1]}\n")
    options = RESTRICTED.format(port=server.remote_port)
    (folder / "authorized_keys").write_text(f"{options} {(folder / 'id.pub').read_text()}")
    (folder / "sshd_config").write_text(
        f"Port {server.port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {folder}/authorized_keys\nStrictModes no\nPermitRootLogin prohibit-password\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nLoginGraceTime 20\n"
        # The start files of the user's own shell are no part of the test.
        f"SetEnv HOME={folder}\n"
    )
    return server


@contextmanager
def running(server: SshServer) -> Iterator[subprocess.Popen[bytes]]:
    """sshd, ended with every session it has."""
    if os.geteuid() == 0:
        # As root, sshd wants its own empty folder, which Debian makes at boot.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    with (server.folder / "sshd.log").open("ab") as log:
        process = subprocess.Popen(
            [program() or "sshd", "-D", "-e", "-f", str(server.folder / "sshd_config")],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        wait_for(lambda: is_listening(server.port))
        yield process
    finally:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for pid in [*children, str(process.pid)]:
            subprocess.run(["kill", "-KILL", pid], capture_output=True, check=False)
        process.wait(10)
