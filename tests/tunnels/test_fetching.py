"""tunnel-client is fetched from a release the owner names, and only with its published digest (001-107).

The release is a stand-in on loopback, with the file names of the real one; the program in it is the stand-in of tunnel-client.
"""

import hashlib
import http.server
import io
import json
import platform
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from computer_linker.client.socket_client import ask_service
from support.service import TOKEN, Service, serving
from support.standins import install

_ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "amd64")
ARCHIVE = f"tunnel-client-v0.0.15-linux-{_ARCHITECTURE}.zip"
ID = "tunnel_0123456789abcdef0123456789abcdef"


class Release(dict[str, bytes]):
    """The files of a release by path, and the paths that were asked for."""

    def __init__(self, program: bytes, name: str = "tunnel-client") -> None:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr(name, program)
        content = packed.getvalue()
        lines = [
            f"{hashlib.sha256(content).hexdigest()}  {ARCHIVE}",
            f"{'0' * 64}  tunnel-client-v0.0.15-plan9-mips.zip",
        ]
        super().__init__({f"/v0.0.15/{ARCHIVE}": content, "/v0.0.15/SHA256SUMS.txt": "\n".join(lines).encode()})
        self.asked: list[str] = []


@contextmanager
def published(release: Release) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            release.asked.append(self.path)
            found = release.get(self.path)
            self.send_response(404 if found is None else 302 if found.startswith(b"location:") else 200)
            if found is not None and found.startswith(b"location:"):
                self.send_header("location", found.decode().partition(":")[2])
                found = b""
            self.send_header("content-length", str(len(found or b"")))
            self.end_headers()
            self.wfile.write(found or b"")

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v0.0.15"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    key = folder / "key"
    key.write_text("sk-0123456789")
    key.chmod(0o600)
    with serving(folder, token=TOKEN, tunnel={"openai": {"tunnelId": ID, "apiKeyFile": str(key)}}) as started:
        yield started


@pytest.fixture
def program(tmp_path: Path) -> bytes:
    return install(tmp_path / "made", "tunnel-client").read_bytes()


def start(service: Service, fetch_from: str | None = None) -> dict[str, Any]:
    given = {"provider": "openai"} | ({"fetchFrom": fetch_from} if fetch_from is not None else {})
    answer = ask_service(service.home, {"owner": "tunnel.start", "input": given})
    assert answer is not None
    return answer


def stored(service: Service) -> list[Path]:
    return sorted((service.home / "programs").glob("*")) if (service.home / "programs").exists() else []


@pytest.mark.parametrize("fault", ["digest", "no sums", "no archive", "no program", "elsewhere", "another kind"])
def test_what_is_not_what_was_published_is_neither_stored_nor_run(service: Service, program: bytes, fault: str) -> None:
    release = Release(program, name="other" if fault == "no program" else "tunnel-client")
    archive = f"/v0.0.15/{ARCHIVE}"
    match fault:
        case "digest":
            release[archive] += b"x"
        case "no sums":
            del release["/v0.0.15/SHA256SUMS.txt"]
        case "no archive":
            del release[archive]
        case "elsewhere":
            release["/v0.0.15/SHA256SUMS.txt"] = b"location:http://127.0.0.1:1/SHA256SUMS.txt"
        case "another kind":
            release[archive] = b"location:ftp://127.0.0.1/x.zip"
    config = (service.home / "config.json").read_bytes()
    with published(release) as address:
        answer = start(service, address)
    assert answer["error"]["code"] == "execution_failed", answer
    assert stored(service) == [] and (service.home / "config.json").read_bytes() == config
    assert not (service.home / "tunnel" / "starts.jsonl").exists()


@pytest.mark.parametrize("address", ["http://release.example/v1", "ftp://127.0.0.1/x", "file:///etc", "not an address"])
def test_a_release_is_fetched_over_https_alone(service: Service, address: str) -> None:
    assert start(service, address)["error"]["code"] == "invalid_request"
    assert stored(service) == []


def test_nothing_is_fetched_unless_the_owner_says_where_from(service: Service) -> None:
    refused = start(service)["error"]
    assert refused["code"] == "provider_unavailable" and "--fetch-from" in refused["details"]["hint"]
    assert stored(service) == []


def test_it_is_fetched_once_checked_and_run_and_kept(service: Service, program: bytes) -> None:
    release = Release(program)
    # Releases are often served from elsewhere.
    release["/elsewhere.zip"] = release[f"/v0.0.15/{ARCHIVE}"]
    release[f"/v0.0.15/{ARCHIVE}"] = b"location:/elsewhere.zip"
    with published(release) as address:
        opened = start(service, address)
        assert opened["ok"] and opened["data"]["tunnelId"] == ID, opened
        (path,) = stored(service)
        assert path.read_bytes() == program and path.stat().st_mode & 0o077 == 0
        kept = json.loads((service.home / "config.json").read_text())["tunnel"]["openai"]
        assert (kept["program"], kept["sha256"]) == (str(path), hashlib.sha256(program).hexdigest())
        asked = list(release.asked)
        assert start(service)["ok"]
        assert release.asked == asked
