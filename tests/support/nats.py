"""A real nats-server of the test's own, on a port of loopback, that can be killed and started again."""

import datetime
import ipaddress
import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from computer_linker.fleet.embedded import free_port, server_program

DEADLINE_S = 180.0


class NatsServer:
    """One server. It keeps its port and its store over a restart."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        config = {
            "listen": f"127.0.0.1:{self.port}",
            "jetstream": {"store_dir": str(folder / "store"), "max_file_store": 1 << 30},
            **settings,
        }
        # The server's own format is a superset of JSON.
        (folder / "server.conf").write_text(json.dumps(config))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "NatsServer":
        log = (self.folder / "log").open("ab")
        self._process = subprocess.Popen(
            [server_program(()), "-c", str(self.folder / "server.conf")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        log.close()
        deadline = time.monotonic() + DEADLINE_S
        while not _listens(self.port):
            assert time.monotonic() < deadline and self._process.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.02)  # bounded above, and ends at once when the server has
        return self

    def kill(self) -> None:
        """End it without a goodbye."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(DEADLINE_S)
            self._process = None

    def freeze(self) -> None:
        """Cut everyone off without a word: connections stay, nothing passes."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def certificate(folder: Path, name: str, address: str = "127.0.0.1") -> tuple[Path, Path]:
    """A self-signed certificate for this machine, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(address))])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    folder.mkdir(exist_ok=True)
    shown, kept = folder / f"{name}.pem", folder / f"{name}.key"
    shown.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    kept.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return shown, kept
