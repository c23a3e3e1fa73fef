"""The consent page in a real browser, as wide as a desk's and as a phone's."""

import os
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from support import nginx
from support.browser import Phone, phone
from support.oauth import Browser, exchange, pkce, query, register
from support.road import folder_scope
from support.service import TOKEN, Service, serving, wait_for

pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="not installed: chromium")


class Client:
    """A client's own small web server: it takes the code, and shows a page that frames whatever it is asked to."""

    def __init__(self) -> None:
        self.came: list[dict[str, str]] = []
        client = self

        class Callback(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                where = urlsplit(self.path)
                given = {name: values[0] for name, values in parse_qs(where.query).items()}
                if where.path == "/cb":
                    client.came.append(given)
                page = f'<iframe src="{given["frame"]}"></iframe>' if where.path == "/framed" else "<p>Back again</p>"
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.end_headers()
                self.wfile.write(page.encode())

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Callback)
        self.base = f"http://127.0.0.1:{self.server.server_port}"
        self.callback = f"{self.base}/cb"


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    it = Client()
    thread = threading.Thread(target=it.server.serve_forever)
    thread.start()
    yield it
    it.server.shutdown()
    thread.join()
    it.server.server_close()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("consent")
    scopes = [folder_scope(folder / "root"), folder_scope(folder / "root", "photos") | {"name": "Photos of 2026"}]
    with serving(folder, token=TOKEN, scopes=scopes, machineName="desktop-pc") as running:
        yield running


def asked(service: Service, client: Client) -> tuple[str, str, str]:
    """The address a client opens, the client's id, and the verifier of its request."""
    browser = Browser(service.base)
    name, (verifier, challenge) = register(browser, client.callback), pkce()
    path = query(browser, name, challenge, redirect_uri=client.callback, scope="linker:read linker:write linker:run")
    return service.base + path, name, verifier


def shot(page: Phone, name: str) -> None:
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(Path(folder) / f"consent-{name}-{page.width}.png")


def assert_fits(page: Phone) -> None:
    assert page.eval("document.documentElement.scrollWidth") <= page.width, "nothing is off the screen"
    assert page.eval("Math.min(...[...document.querySelectorAll('button, label')].map(e => e.offsetHeight))") >= 44


@pytest.mark.parametrize("is_wide", [True, False], ids=["wide", "phone"])
def test_the_owner_reads_chooses_and_approves(service: Service, client: Client, tmp_path: Path, is_wide: bool) -> None:
    address, name, verifier = asked(service, client)
    with phone(tmp_path / "profile", is_wide=is_wide) as page:
        page.open(address)
        text = page.eval("document.body.innerText")
        assert "Probe" in text and client.base.removeprefix("http://") in text
        assert "desktop-pc" not in text and "Photos" not in text, "anyone may open this page"
        assert_fits(page)
        shot(page, "asked")
        page.type("input[name=owner_token]", "not-the-token")
        page.click("button[value=allow]")
        page.until("document.querySelector('[role=alert]')?.innerText.includes('not the owner token')")
        shot(page, "wrong")
        page.type("input[name=owner_token]", TOKEN)
        page.click("button[value=allow]")
        page.until("document.body.innerText.includes('Photos of 2026')")
        assert "desktop-pc" in page.eval("document.querySelector('h1').innerText")
        assert str(service.root) in page.eval("document.body.innerText")
        assert_fits(page)
        page.click("button[value=allow]")
        page.until("document.querySelector('[role=alert]')?.innerText.includes('Choose at least one')")
        assert page.eval("document.querySelector(\"input[value='linker:desktop']\").checked") is False, (
            "nobody asked for it"
        )
        page.click("input[value='linker:run']")
        page.click("input[name=scope][value=app]")
        shot(page, "chosen")
        page.click("button[value=allow]")
        page.until("document.body.innerText.includes('Back again')")
        assert page.eval("document.referrer") == "", "the client learns nothing of the page it came from"
    told = client.came.pop()
    assert (told["state"], told["iss"]) == ("s1", service.base)
    code, issued = exchange(Browser(service.base), name, told["code"], verifier, redirect_uri=client.callback)
    assert (code, issued["scope"]) == (200, "linker:read linker:write")


def test_the_owner_declines_without_typing_anything(service: Service, client: Client, tmp_path: Path) -> None:
    address, _, _ = asked(service, client)
    with phone(tmp_path / "profile") as page:
        page.open(address)
        page.click("button[value=deny]")
        page.until("document.body.innerText.includes('Back again')")
    assert client.came.pop() == {"error": "access_denied", "state": "s1", "iss": service.base}


def test_another_sites_frame_shows_nothing_of_it(service: Service, client: Client, tmp_path: Path) -> None:
    from urllib.parse import quote

    address, _, _ = asked(service, client)
    with phone(tmp_path / "profile", is_wide=True) as page:
        page.open(f"{client.base}/framed?frame={quote(address, safe='')}")
        frame = wait_for(lambda: page.send("Page.getFrameTree")["frameTree"].get("childFrames"))[0]["frame"]
        wait_for(lambda: page.send("Page.getFrameTree")["frameTree"]["childFrames"][0]["frame"]["url"] != "about:blank")
        frame = page.send("Page.getFrameTree")["frameTree"]["childFrames"][0]["frame"]
        assert frame["url"] == "chrome-error://chromewebdata/", frame
        page.open(address)
        assert page.eval("document.querySelectorAll('form').length") == 1, "the same address opens by itself"


def test_a_page_that_is_too_late_says_so_in_words(service: Service, client: Client, tmp_path: Path) -> None:
    address, _, _ = asked(service, client)
    with phone(tmp_path / "profile") as page:
        page.open(address)
        page.eval("document.querySelector('input[name=request]').value = 'another'")
        page.type("input[name=owner_token]", TOKEN)
        page.click("button[value=allow]")
        page.until("document.body.innerText.includes('no longer open')")
        shot(page, "late")
        assert page.eval("document.querySelectorAll('h1').length") == 1, "a page for people, not JSON"
    assert client.came == []


@pytest.mark.skipif(nginx.program() is None, reason="not installed: nginx")
def test_the_page_works_behind_tls_where_the_cookie_is_bound_to_the_host(client: Client, tmp_path: Path) -> None:
    front = nginx.front(tmp_path / "front")
    certificate = front.authority.certificate("localhost")
    with (
        serving(tmp_path, token=TOKEN, publicBaseUrl=front.base) as service,
        nginx.proxying(front, service.port, certificate=certificate),
        phone(tmp_path / "profile", f"--ignore-certificate-errors-spki-list={certificate.pin}") as page,
    ):
        browser = Browser(front.base, front.tls)
        name, (verifier, challenge) = register(browser, client.callback), pkce()
        page.open(front.base + query(browser, name, challenge, redirect_uri=client.callback))
        cookie = page.send("Network.getCookies", urls=[front.base])["cookies"][0]
        assert cookie["name"].startswith("__Host-") and cookie["secure"] and cookie["httpOnly"]
        assert cookie["sameSite"] == "Lax"
        page.type("input[name=owner_token]", TOKEN)
        page.click("button[value=allow]")
        page.until("!!document.querySelector('input[name=scope][value=app]')")
        page.click("input[name=scope][value=app]")
        page.click("button[value=allow]")
        page.until("document.body.innerText.includes('Back again')")
        told = client.came.pop()
        assert told["iss"] == front.base
        assert exchange(browser, name, told["code"], verifier, redirect_uri=client.callback)[0] == 200


def test_the_page_can_be_read_in_the_dark(service: Service, client: Client, tmp_path: Path) -> None:
    address, _, _ = asked(service, client)
    with phone(tmp_path / "profile") as page:
        dark = [{"name": "prefers-color-scheme", "value": "dark"}]
        page.send("Emulation.setEmulatedMedia", features=dark)
        page.open(address)
        page.type("input[name=owner_token]", TOKEN)
        page.click("button[value=allow]")
        page.until("!!document.querySelector('input[name=scope]')")
        shot(page, "dark")
        light = "(c => c.match(/[0-9.]+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0) / 3)"
        text = page.eval(f"{light}(getComputedStyle(document.querySelector('label')).color)")
        ground = page.eval(f"{light}(getComputedStyle(document.body).backgroundColor)")
        assert text - ground > 150
