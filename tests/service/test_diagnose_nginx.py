"""`diagnose client` through a real nginx with TLS: a right one passes whole, each broken one is named with its remedy."""

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support import nginx
from support.commands import command
from support.nginx import PASS, Front, proxying
from support.service import TOKEN, Service, serving

pytestmark = pytest.mark.skipif(nginx.program() is None, reason="not installed: nginx")


@dataclass(frozen=True)
class Site:
    """A service that is to be reached by a public address, and where nginx answers for it."""

    service: Service
    front: Front

    def diagnose(self, *words: str, **env: str) -> tuple[int, dict[str, Any], str]:
        done = command(
            self.service.home, "diagnose", "client", *(words or ("--public",)), "--json", env=env or self.front.trusting
        )
        assert done.stdout, done.stderr
        assert TOKEN not in done.stdout
        return done.returncode, json.loads(done.stdout), done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("nginx")
    front = nginx.front(folder / "front")
    with serving(folder, token=TOKEN, publicBaseUrl=front.base) as service:
        (service.root / "a.txt").write_text("hello")
        yield Site(service, front)


def test_every_hop_of_a_plain_reverse_proxy(site: Site) -> None:
    with proxying(site.front, site.service.port):
        code, answer, _ = site.diagnose()
    # A machine that is busy just now may be slow at one hop, and says so.
    others = [warning for warning in answer["warnings"] if "this computer is busy" not in warning]
    assert (code, answer["ok"], answer["hop"], others) == (0, True, None, []), answer["steps"]
    assert [step["hop"] for step in answer["steps"]] == [
        "dns", "tcp", "tls", "challenge", "resource metadata", "server metadata", "register", "authorize", "token", "refresh",
        "server/discover", "tools/list", "call", "revoke",
    ]  # fmt: skip
    assert answer["steps"][2]["detail"] == "TLSv1.3"


def test_a_smoke_test_by_the_public_address(site: Site) -> None:
    with proxying(site.front, site.service.port):
        done = command(site.service.home, "client", "smoke", "--public", "--json", env=site.front.trusting)
    answer = json.loads(done.stdout)
    assert done.returncode == 0, answer
    assert [step["step"] for step in answer["steps"]] == ["get_computer_info", "file.list in app"]
    assert TOKEN not in done.stdout


def test_a_smoke_test_says_what_is_wrong_with_the_certificate(site: Site) -> None:
    with proxying(site.front, site.service.port):
        done = command(site.service.home, "client", "smoke", "--public")
    assert done.returncode == 1
    assert "certificate" in (done.stdout + done.stderr).lower()
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("names", "is_expired", "is_trusted", "seen"),
    [
        (("localhost",), False, False, "issuer"),
        (("other.example",), False, True, "mismatch"),
        (("localhost",), True, True, "expired"),
    ],
    ids=["unknown authority", "another name", "expired"],
)
def test_a_certificate_that_clients_refuse(
    site: Site, names: tuple[str, ...], is_expired: bool, is_trusted: bool, seen: str
) -> None:
    certificate = site.front.authority.certificate(*names, is_expired=is_expired)
    with proxying(site.front, site.service.port, certificate=certificate):
        code, answer, _ = site.diagnose(**(site.front.trusting if is_trusted else {"SSL_CERT_FILE": os.devnull}))
    assert (code, answer["hop"]) == (1, "tls")
    assert seen in answer["steps"][-1]["detail"] and "certificate" in answer["remedy"]


HTML = "default_type text/html; return 200 '<html>welcome</html>';"
BROKEN = {
    "Host of the upstream": ("", "proxy_pass http://127.0.0.1:{upstream};", "resource metadata", "Host"),
    "Host without its port": (
        "", "proxy_pass http://127.0.0.1:{upstream}; proxy_set_header Host $host;", "challenge", "Host",
    ),
    "a page for everything": ("", HTML, "challenge", "in our place"),
    "moved elsewhere": ("", "return 301 https://elsewhere.example$request_uri;", "challenge", "address it leads to"),
    "a login in front": ("", "return 403;", "challenge", "access rule"),
    "challenge dropped": ("", PASS + "proxy_hide_header WWW-Authenticate;", "challenge", "WWW-Authenticate"),
    "metadata blocked": ("location /.well-known/ {{ return 404; }}", PASS, "resource metadata", "/.well-known"),
    "metadata from elsewhere": (f"location /.well-known/ {{{{ {HTML} }}}}", PASS, "resource metadata", "in our place"),
    "half the metadata": (
        "location /.well-known/oauth-authorization-server {{ return 403; }}", PASS, "server metadata", "access rule",
    ),
    "registration closed": ("location = /register {{ return 403; }}", PASS, "register", "access rule"),
    "registration missing": ("location = /register {{ return 404; }}", PASS, "register", "/register"),
    "authorize fails": ("location = /authorize {{ return 500; }}", PASS, "authorize", "failed"),
    "consent missing": ("location /oauth/ {{ return 404; }}", PASS, "authorize", "/oauth/consent"),
    "cookies dropped": ("", PASS + "proxy_hide_header Set-Cookie;", "authorize", "cookies"),
    "token fails": ("location = /token {{ return 500; }}", PASS, "token", "failed"),
    "token body dropped": (
        "location = /token {{ " + PASS + " proxy_pass_request_body off; proxy_set_header Content-Length 0; }}", PASS,
        "token", "form bodies",
    ),
    "Authorization dropped": ("", PASS + 'proxy_set_header Authorization "";', "server/discover", "Authorization"),
    "nothing behind it": ("", "proxy_pass http://127.0.0.1:9; proxy_set_header Host $http_host;", "challenge", "reach"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_each_broken_hop_is_named_with_what_would_help(site: Site, name: str) -> None:
    locations, main, hop, remedy = BROKEN[name]
    with proxying(site.front, site.service.port, locations.format(upstream=site.service.port), main=main):
        code, answer, _ = site.diagnose()
    assert (code, answer["hop"]) == (1, hop), answer["steps"]
    assert remedy in answer["remedy"], answer["steps"][-1]


def test_a_service_that_hangs_behind_its_proxy(site: Site) -> None:
    with proxying(site.front, site.service.port, main=PASS + "proxy_read_timeout 1s;"):
        os.kill(site.service.process.pid, signal.SIGSTOP)
        try:
            code, answer, _ = site.diagnose("https://localhost:" + str(site.front.port) + "/mcp")
        finally:
            os.kill(site.service.process.pid, signal.SIGCONT)
        assert (code, answer["hop"]) == (1, "challenge")
        assert "in time" in answer["remedy"], answer["steps"]
        assert site.diagnose()[0] == 0, "and once it goes on, so do we"


def test_a_slow_proxy_is_not_taken_for_a_broken_one(site: Site) -> None:
    slowly = "location /.well-known/oauth-authorization-server {{ " + PASS + " limit_rate 250; }}"
    with proxying(site.front, site.service.port, slowly.format(upstream=site.service.port)):
        code, answer, _ = site.diagnose()
    assert (code, answer["hop"]) == (0, None), answer["steps"]
    assert [warning.split(" took ")[0] for warning in answer["warnings"]] == ["server metadata"]


def test_a_proxy_that_is_gone(site: Site) -> None:
    code, answer, _ = site.diagnose()
    assert (code, answer["hop"]) == (1, "tcp") and "tunnel" in answer["remedy"]


def test_no_broken_run_left_a_session_behind(site: Site) -> None:
    kept = json.loads((Path(site.service.home) / "oauth-state.json").read_text())
    assert [family for family in kept["families"] if family["refresh"] or family["access"]] == []
