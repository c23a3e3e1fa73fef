"""A phone on the same network reaches the approval page by the machine's own address, once the owner switched both on.

127.0.0.2 stands for that address: the service listens on every address, and the connection arrives at this one.
"""

import http.client
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from computer_linker.transports.http.guards import Authorities
from computer_linker.transports.http.own_address import at_own_address, base_for_others, is_loopback, is_near
from support.browser import phone
from support.commands import command
from support.road import folder_scope
from support.service import TOKEN, Service, serving

HERE = "127.0.0.2"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("network")
    scopes = [folder_scope(folder / "root", confirm="all")]
    with serving(folder, token=TOKEN, scopes=scopes, host="0.0.0.0") as running:
        yield running


def cli(service: Service, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return command(service.home, *arguments)


def link(service: Service) -> str:
    assert cli(service, "config", "set", "approvalPage", "true").returncode == 0
    url: str = json.loads(cli(service, "approvals", "phone", "--json").stdout)["url"]
    return "/approve/" + url.rpartition("/")[2]


def get(service: Service, path: str, host: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(HERE, service.port, timeout=30)
    connection.request("GET", path, headers={"Host": host, **headers})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer


def test_the_owner_switches_it_on_and_off_with_one_command(service: Service) -> None:
    path = link(service)
    assert cli(service, "config", "set", "approvalPage", "false").returncode == 0
    assert get(service, path, f"{HERE}:{service.port}").status == 404
    refused = cli(service, "approvals", "phone")
    assert refused.returncode == 1 and "config set approvalPage true" in refused.stderr
    assert cli(service, "config", "set", "approvalPage", "perhaps").returncode != 0


def test_the_link_opens_at_the_address_the_phone_came_by(service: Service) -> None:
    opened = get(service, link(service), f"{HERE}:{service.port}")
    assert (opened.status, opened.getheader("location")) == (303, "/approve")
    cookie = str(opened.getheader("set-cookie"))
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and "Path=/approve" in cookie
    page = get(service, "/approve", f"{HERE}:{service.port}", Cookie=cookie.partition(";")[0])
    assert page.status == 200
    policy = str(page.getheader("content-security-policy"))
    assert "frame-ancestors 'none'" in policy and "default-src 'none'" in policy and "form-action 'self'" in policy
    assert page.getheader("x-frame-options") == "DENY"
    assert page.getheader("referrer-policy") == "same-origin", "the secret of a link never reaches another site"
    assert page.getheader("cache-control") == "no-store"


@pytest.mark.parametrize(
    "host", ["evil.example:$P", f"{HERE}:1", HERE, f"{HERE}.evil.example:$P", "0.0.0.0:$P", "192.0.2.77:$P", ""]
)
def test_any_other_name_is_refused_and_spends_nothing(service: Service, host: str) -> None:
    path = link(service)
    assert get(service, path, host.replace("$P", str(service.port))).status in (400, 421)
    assert get(service, path, f"{HERE}:{service.port}").status == 303


def test_a_foreign_origin_is_refused_at_that_address_too(service: Service) -> None:
    here = f"{HERE}:{service.port}"
    assert get(service, link(service), here, Origin="http://evil.example").status == 403
    assert get(service, link(service), here, Origin="null").status == 403


@pytest.mark.parametrize("path", ["/mcp", "/api/v1/control", "/healthz", "/authorize", "/approved"])
def test_nothing_else_answers_to_that_address(service: Service, path: str) -> None:
    link(service)
    assert get(service, path, f"{HERE}:{service.port}", Authorization=f"Bearer {TOKEN}").status == 421


@pytest.mark.skipif(shutil.which("chromium") is None, reason="not installed: chromium")
def test_a_browser_comes_by_that_address_and_no_other_page_can_frame_it(service: Service, tmp_path: Path) -> None:
    base = f"http://{HERE}:{service.port}"
    with phone(tmp_path / "profile") as browser:
        browser.open(base + link(service))
        browser.until("document.body.innerText.includes('Nothing waits')")
        assert browser.eval("location.href") == f"{base}/approve", "the secret is not in the address any more"
        assert browser.eval("document.referrer") == ""
        framing = tmp_path / "framing.html"
        framing.write_text(f'<h1>Framing</h1><iframe src="{base}/approve"></iframe>')
        browser.send("Page.navigate", url=framing.as_uri())
        browser.until("document.querySelector('iframe') && document.readyState == 'complete'")
        # A page that may not be framed becomes an error page, which is nobody's origin.
        assert browser.eval("document.querySelector('iframe').contentDocument") is None


@pytest.mark.parametrize(
    ("peer", "near"),
    [
        ("127.0.0.1", True), ("192.168.1.20", True), ("10.0.0.9", True), ("100.64.1.1", True), ("fd00::2", True),
        ("fe80::1%eth0", True), ("::ffff:192.168.1.20", True), ("8.8.8.8", False), ("2606:4700::1111", False),
        ("::ffff:8.8.8.8", False), ("", False), ("testclient", False),
    ],
)  # fmt: skip
def test_only_addresses_of_near_networks_are_let_in(peer: str, near: bool) -> None:
    assert is_near(peer) is near


def test_the_link_names_an_address_others_can_reach() -> None:
    assert base_for_others("http://192.168.1.5:3939/mcp") == "http://192.168.1.5:3939"
    assert base_for_others("http://[fd00::5]:3939/mcp") == "http://[fd00::5]:3939"
    assert not base_for_others("http://0.0.0.0:3939/mcp").startswith("http://0.0.0.0")
    assert is_loopback("http://127.0.0.1:1") and is_loopback("http://localhost:1") and not is_loopback("http://box:1")


def test_an_address_that_came_through_an_ipv6_socket_is_written_plainly() -> None:
    none = Authorities(frozenset(), frozenset(), frozenset())
    assert at_own_address(none, ("::ffff:192.168.1.5", 80)).local_hosts == {b"192.168.1.5:80"}
    assert at_own_address(none, ("fd00::5", 80)).origins == {b"http://[fd00::5]:80"}
    assert at_own_address(none, None) == none
