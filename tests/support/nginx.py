"""A real nginx on loopback with TLS, in front of a service, well set up or broken on purpose."""

import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.certificates import Authority, Certificate
from support.service import wait_for

PASS = "proxy_pass http://127.0.0.1:{upstream}; proxy_set_header Host $http_host;"
"""All that a plain reverse proxy needs. The port comes in by `format`, so other braces are doubled."""
_CONFIG = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log notice;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port} ssl; ssl_protocols TLSv1.2 TLSv1.3;
    ssl_certificate {certificate}; ssl_certificate_key {key};
    {locations}
  }}
}}
"""


def program() -> str | None:
    """nginx, wherever Debian puts it."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


@dataclass(frozen=True)
class Front:
    """Where nginx will be: the address to expose, whose certificates it has, and the folder it works in."""

    folder: Path
    port: int
    authority: Authority

    @property
    def base(self) -> str:
        return f"https://localhost:{self.port}"

    @property
    def tls(self) -> ssl.SSLContext:
        """Trusts the test's own authority alone."""
        return ssl.create_default_context(cafile=str(self.authority.file))

    @property
    def trusting(self) -> dict[str, str]:
        """The environment of a program that trusts the test's own authority."""
        return {"SSL_CERT_FILE": str(self.authority.file)}


def front(folder: Path) -> Front:
    """A free port and an authority."""
    folder.mkdir(parents=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return Front(folder, port, Authority(folder))


@contextmanager
def proxying(
    place: Front, upstream: int, locations: str = "", *, main: str = PASS, certificate: Certificate | None = None
) -> Iterator[None]:
    """nginx in front of the service, ended with the body. `locations` come before the one that passes the rest on."""
    shown = certificate or place.authority.certificate("localhost", "127.0.0.1")
    inner = f"{locations} location / {{ {main.format(upstream=upstream)} }}"
    config = place.folder / "nginx.conf"
    config.write_text(
        _CONFIG.format(folder=place.folder, port=place.port, certificate=shown.file, key=shown.key, locations=inner)
    )
    nginx = program()
    assert nginx is not None, "look with program() first"
    process = subprocess.Popen(
        [nginx, "-p", str(place.folder), "-c", str(config), "-e", str(place.folder / "error.log")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_for(lambda: _answers(place.port) or process.poll() is not None)
        assert process.poll() is None, (place.folder / "error.log").read_text()
        yield
    finally:
        process.terminate()
        process.wait(10)


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
