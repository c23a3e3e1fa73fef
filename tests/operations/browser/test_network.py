"""What a browser may reach: by the scope's policy, through the gate, and never this service or a machine's metadata."""

import socket
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from support.named_server import named_server
from support.pages import browser_road, left_running
from support.road import Road
from support.web import web_server

pytestmark = [pytest.mark.anyio, pytest.mark.clients]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with web_server() as found:
        yield found


@pytest.fixture
def own() -> Iterator[socket.socket]:
    """A port this very process listens on, as the service's own."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield listener


def nobody_came(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return True
    return False


_NOT_FILES = [
    ("http://127.0.0.1:9/", "permission_denied"),
    ("https://example.com/", "permission_denied"),
    ("HTTP://example.com/", "permission_denied"),
    ("file:///etc/passwd", "permission_denied"),
    ("FILE:///etc/passwd", "permission_denied"),
    (" file:///etc/passwd", "permission_denied"),
    ("javascript:alert(1)", "permission_denied"),
    ("data:text/html,hi", "permission_denied"),
    ("chrome://version", "permission_denied"),
    ("view-source:http://example.com", "permission_denied"),
    ("devtools://devtools", "permission_denied"),
    ("about:config", "permission_denied"),
    ("ws://127.0.0.1/", "permission_denied"),
    ("/etc/passwd", "path_out_of_scope"),
    ("../out.html", "path_out_of_scope"),
    ("missing.html", "not_found"),
    (".env", "permission_denied"),
    (".", "invalid_request"),
    ("localhost:3000", "invalid_request"),
    ("form.html\n--flag", "invalid_request"),
    ("--profile", "not_found"),
    ("link.html", "invalid_request"),
]
_NO_ADDRESSES = [
    "http:///x",
    "http://user:pw@127.0.0.1/",
    "http://a b/",
    "http://[::1/",
    "http://x:99999/",
    "http:\\\\x",
]


async def test_without_the_network_only_files_of_the_scope_open(tmp_path: Path) -> None:
    async with browser_road(tmp_path) as road:
        (road.root / ".env").write_text("SECRET=1")
        (road.root / "link.html").symlink_to("/etc/hostname")
        for target, code in _NOT_FILES:
            assert await road.code("browser.open", target) == code, target
        assert left_running(road.home) == []
        assert not (road.home / "browsers").exists()


async def test_an_address_that_is_none_is_refused(tmp_path: Path) -> None:
    async with browser_road(tmp_path, network=True) as road:
        for target in _NO_ADDRESSES:
            assert await road.code("browser.open", target) == "invalid_request", target
        assert left_running(road.home) == []


async def test_a_local_server_shows_and_this_service_does_not(tmp_path: Path, port: int, own: socket.socket) -> None:
    mine = own.getsockname()[1]
    async with browser_road(tmp_path, network=True) as road:
        opened = await road.data("browser.open", f"http://localhost:{port}/hello")
        assert opened["title"] == "/hello"
        assert "network" in opened["boundary"]
        for address in (
            f"http://127.0.0.1:{mine}/",
            f"http://localhost:{mine}/",
            f"http://[::ffff:127.0.0.1]:{mine}/",
            f"http://127.1:{mine}/",
            f"http://2130706433:{mine}/",
            f"http://127.0.0.1:{port}/redirect?to=http://127.0.0.1:{mine}/",
        ):
            await _refused(road, address)
        fetching = await road.call("browser.open", f"http://127.0.0.1:{port}/fetch?to=http://127.0.0.1:{mine}/")
        assert fetching["ok"], fetching
        assert nobody_came(own)


async def test_metadata_and_no_addresses_are_refused(tmp_path: Path, port: int) -> None:
    async with browser_road(tmp_path, network=True) as road:
        for host in (
            "169.254.169.254",
            "[fe80::1]",
            "0.0.0.0",
            "100.100.100.200",
            "[::ffff:169.254.169.254]",
            "224.0.0.1",
        ):
            await _refused(road, f"http://{host}/latest/meta-data/")
        await _refused(road, f"http://127.0.0.1:{port}/redirect?to=http://169.254.169.254/latest/")


async def test_https_to_a_forbidden_address_makes_no_tunnel(tmp_path: Path, own: socket.socket) -> None:
    async with browser_road(tmp_path, network=True) as road:
        envelope = await road.call("browser.open", f"https://127.0.0.1:{own.getsockname()[1]}/")
        assert not envelope["ok"] or "chrome-error" in envelope["data"]["url"]
        assert nobody_came(own)


async def test_a_file_page_has_no_network_either(tmp_path: Path, port: int) -> None:
    async with browser_road(tmp_path) as road:
        page = "<!doctype html><title>waiting</title><script>fetch('http://127.0.0.1:%d/', {mode: 'no-cors'}).then(() => 'reached', () => 'failed').then(t => document.title = t)</script>"
        (road.root / "fetch.html").write_text(page % port)
        await road.data("browser.open", "fetch.html")
        title = "waiting"
        with anyio.fail_after(30):
            while title == "waiting":
                title = (await road.data("browser.text"))["title"]
        assert title == "failed"


async def _refused(road: Road, address: str) -> None:
    envelope = await road.call("browser.open", address)
    if envelope["ok"]:
        assert "is not opened" in (await road.data("browser.text"))["text"], (address, envelope)
        assert any("may not have" in warning for warning in envelope["warnings"]), envelope
    else:
        assert envelope["error"]["code"] in ("execution_failed", "permission_denied", "timeout"), envelope


async def test_without_a_boundary_the_gate_still_holds(tmp_path: Path, port: int, own: socket.socket) -> None:
    async with browser_road(tmp_path, network=True, sandbox="off") as road:
        envelope = await road.call("browser.open", f"http://127.0.0.1:{port}/hello")
        assert (envelope["data"]["title"], envelope["data"]["boundary"]) == ("/hello", "none")
        assert any("No kernel boundary held" in warning for warning in envelope["warnings"])
        await _refused(road, f"http://127.0.0.1:{own.getsockname()[1]}/")
        assert nobody_came(own)
    assert left_running(road.home) == []


async def test_with_a_list_a_page_loads_from_its_hosts_and_from_no_other(tmp_path: Path, port: int) -> None:
    """The page of an allowed name asks for something of another name; the browser gets the first and not the second."""
    with named_server() as other:
        network = [f"shop.example.org:{port}=127.0.0.1"]
        async with browser_road(tmp_path, network=network) as road:
            denied = await road.call("browser.open", f"http://other.example.org:{other.port}/")
            assert denied["error"]["code"] == "permission_denied" and "allow-host app" in denied["error"]["message"]
            opened = await road.data(
                "browser.open", f"http://shop.example.org:{port}/fetch?to=http://localhost:{other.port}/x"
            )
            assert opened["url"].startswith("http://shop.example.org")
            with anyio.fail_after(60):
                # The gate's own refusal is an answer too, so the title only shows that the request is over.
                while not (await road.data("browser.text"))["title"].startswith("fetch "):
                    pass
            assert other.seen == []
