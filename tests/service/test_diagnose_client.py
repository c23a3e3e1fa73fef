"""`diagnose client` plays a connector's steps and names the hop that fails."""

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from support import commands
from support.service import PROGRAM, TOKEN, Service, environment, owner, serving, write_config


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("diagnose"), token=TOKEN) as running:
        yield running


def diagnose(home: Path, *words: str) -> tuple[int, dict[str, Any], str]:
    done = commands.command(home, "diagnose", "client", *words, "--json")
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), done.stdout


def test_every_hop_of_a_service_that_works(service: Service) -> None:
    code, answer, text = diagnose(service.home)
    assert (code, answer["ok"], answer["hop"]) == (0, True, None), answer["steps"]
    assert [step["hop"] for step in answer["steps"]] == [
        "dns", "tcp", "challenge", "resource metadata", "server metadata", "register", "authorize", "token", "refresh",
        "server/discover", "tools/list", "call", "revoke",
    ]  # fmt: skip
    assert TOKEN not in text
    assert "computer-linker-diagnose/1" in [group["client"] for group in answer["connections"]]
    assert set(answer["refused"]) == {"no_credential"}, "the play's own first step"
    assert "diagnose" not in owner(service, "sessions", "list"), "nothing is left behind"


def test_a_service_without_a_token_needs_no_oauth(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        answer = diagnose(running.home)[1]
    assert answer["ok"] and "authorize" not in [step["hop"] for step in answer["steps"]]


def test_nothing_listens(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        write_config(tmp_path / "home", tmp_path / "root", token=TOKEN, port=free.getsockname()[1])
        code, answer, _ = diagnose(tmp_path / "home")
    assert (code, answer["hop"]) == (1, "tcp") and "start" in answer["remedy"]


def test_a_name_nobody_has(service: Service) -> None:
    code, answer, _ = diagnose(service.home, "https://no-such-name.invalid/mcp")
    assert (code, answer["hop"]) == (1, "dns")


def test_plain_http_where_tls_should_be(service: Service) -> None:
    code, answer, _ = diagnose(service.home, f"https://127.0.0.1:{service.port}/mcp")
    assert (code, answer["hop"]) == (1, "tls")


@pytest.fixture
def proxy(service: Service) -> Iterator[Any]:
    """Something in between, on a port of its own, that answers as each test wants and notes what it was sent."""

    class Between(BaseHTTPRequestHandler):
        seen: list[bytes] = []
        answers: dict[str, tuple[int, dict[str, str], bytes]] = {}

        def do_POST(self) -> None:
            self.seen.append(self.rfile.read(int(self.headers.get("content-length", 0))))
            self.do_GET()

        def do_GET(self) -> None:
            status, headers, body = self.answers.get(self.path.split("?")[0], (502, {}, b"bad gateway"))
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Between)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    Between.base = f"http://127.0.0.1:{server.server_port}"  # type: ignore[attr-defined]
    yield Between
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_proxy_that_leads_nowhere(service: Service, proxy: Any) -> None:
    answer = diagnose(service.home, f"{proxy.base}/mcp")[1]
    assert answer["hop"] == "challenge" and "502" in answer["steps"][-1]["detail"]


def test_a_proxy_that_drops_the_challenge(service: Service, proxy: Any) -> None:
    proxy.answers["/mcp"] = (401, {}, b"{}")
    answer = diagnose(service.home, f"{proxy.base}/mcp")[1]
    assert answer["hop"] == "challenge" and "WWW-Authenticate" in answer["remedy"]


def test_metadata_of_another_address_and_a_token_that_stays_home(service: Service, proxy: Any) -> None:
    proxy.answers["/mcp"] = (401, {"www-authenticate": 'Bearer resource_metadata="x"'}, b"{}")
    place = "/.well-known/oauth-protected-resource/mcp"
    proxy.answers[place] = (200, {}, json.dumps({"resource": "https://other.example/mcp"}).encode())
    answer = diagnose(service.home, f"{proxy.base}/mcp")[1]
    assert answer["hop"] == "resource metadata" and "publicBaseUrl" in answer["remedy"]
    proxy.answers[place] = (200, {}, json.dumps({"resource": f"{proxy.base}/mcp"}).encode())
    issuer = json.dumps({"issuer": proxy.base}).encode()
    proxy.answers["/.well-known/oauth-authorization-server"] = (200, {}, issuer)
    proxy.answers["/register"] = (201, {}, b'{"client_id": "c"}')
    answer = diagnose(service.home, f"{proxy.base}/mcp")[1]
    assert answer["steps"][-1] == {
        "hop": "authorize", "ok": None, "detail": "left out: the owner token is not at hand here",
    }  # fmt: skip
    assert answer["ok"] is False and not any(TOKEN.encode() in body for body in proxy.seen)


def test_the_profile_keeps_the_token_to_itself(service: Service) -> None:
    command = [*PROGRAM, "profile", "--json"]
    done = subprocess.run(command, env=environment(service.home), capture_output=True, text=True, check=True)
    profile = json.loads(done.stdout)
    assert profile["localMcpUrl"] == service.url and profile["running"] is True
    assert profile["authorization"] == "Bearer YOUR_OWNER_TOKEN" and TOKEN not in done.stdout
