"""The approval page: off by default, opened once by a link, and a person's thumb decides in a real browser at phone width."""

import http.client
import json
import os
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.browser import phone
from support.commands import command
from support.road import folder_scope
from support.service import Service, owner, serving, wait_for


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """One for each test: a request that a test leaves waiting must not be on another's page."""
    with serving(tmp_path, scopes=[folder_scope(tmp_path / "root", confirm="all")], approvalPage=True) as running:
        yield running


def link(service: Service) -> str:
    done = command(service.home, "approvals", "phone", "--json")
    url: str = json.loads(done.stdout)["url"]
    return url


def path_of(url: str) -> str:
    return "/approve/" + url.rpartition("/")[2]


def ask(service: Service, answers: list[Any]) -> threading.Thread:
    """Delete keep.txt in the background; with an approver there, the call waits."""

    def call() -> None:
        http = service.http()
        request = {"scope": "app", "op": "file.delete", "target": "keep.txt"}
        answers.append(http.control("computer_operation", **request))
        http.close()

    thread = threading.Thread(target=call)
    thread.start()
    return thread


def test_it_is_off_by_default(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        http = running.http()
        assert http.send("GET", "/approve")[0] == 404
        http.close()
        done = command(running.home, "approvals", "phone")
        assert done.returncode == 1 and "approvalPage" in done.stderr


def test_without_a_link_nothing_is_shown_and_a_link_opens_once(service: Service) -> None:
    http = service.http()
    for path in ("/approve", "/approve/", "/approve/guess", "/approve/../approve"):
        status, body = http.send("GET", path)
        assert status in (403, 404) and b"<form" not in body
    assert http.send("POST", "/approve", b"id=x&answer=allow&csrf=x")[0] == 403
    first, second = path_of(link(service)), path_of(link(service))
    assert http.send("GET", first)[0] == 403, "a newer link ends the older one"
    assert http.send("HEAD", second)[0] == 403, "and only opening it opens it"
    assert http.send("GET", path_of(link(service)))[0] == 303
    assert http.send("GET", second)[0] == 403
    http.close()


def test_a_proxy_and_a_foreign_host_find_nothing(service: Service) -> None:
    http = service.http()
    assert http.send("GET", path_of(link(service)), headers={"X-Forwarded-For": "1.2.3.4"})[0] == 404
    assert http.send("GET", path_of(link(service)), headers={"Host": "evil.example"})[0] == 421
    http.close()


@pytest.mark.skipif(shutil.which("chromium") is None, reason="not installed: chromium")
def test_a_thumb_allows_or_refuses_in_a_real_browser(service: Service, tmp_path: Path) -> None:
    keep = service.root / "keep.txt"
    keep.write_text("kept")
    with phone(tmp_path / "profile") as browser:
        browser.open(link(service))
        browser.until("document.body.innerText.includes('Nothing waits')")
        for button, is_gone in (("deny", False), ("allow", True)):
            answers: list[Any] = []
            call = ask(service, answers)
            browser.until("document.querySelector('h2') && document.querySelector('h2').innerText == 'file.delete'")
            assert "-kept" in browser.eval("document.querySelector('pre').innerText"), "what goes is shown"
            assert '"keep.txt"' in browser.eval("document.querySelectorAll('pre')[1].innerText")
            assert browser.eval("document.documentElement.scrollWidth") <= 390, "nothing is off the screen"
            assert browser.eval("Math.min(...[...document.querySelectorAll('button')].map(b => b.offsetHeight))") >= 44
            if shots := os.environ.get("SCREENSHOTS"):
                browser.screenshot(Path(shots) / f"approval-{button}.png")
            browser.until(f"!document.querySelector('button[value={button}]').disabled")
            browser.eval(f"document.querySelector('button[value={button}]').click()")
            call.join(30)
            assert answers[0]["ok"] is is_gone and keep.exists() is not is_gone
            wait_for(lambda: browser.eval("document.body.innerText.includes('Nothing waits')"))


@pytest.mark.skipif(shutil.which("chromium") is None, reason="not installed: chromium")
def test_an_answer_without_the_pages_own_secret_is_refused(service: Service, tmp_path: Path) -> None:
    keep = service.root / "keep.txt"
    keep.write_text("kept")
    with phone(tmp_path / "profile") as browser:
        browser.open(link(service))
        answers: list[Any] = []
        call = ask(service, answers)
        browser.until("document.querySelector('form')")
        browser.until("!document.querySelector('button[value=allow]').disabled")
        browser.eval("document.querySelector('input[name=csrf]').value = 'forged'")
        browser.eval("document.querySelector('button[value=allow]').click()")
        browser.until("document.body.innerText.includes('not from your page')")
        assert keep.exists() and not answers
        listed = command(service.home, "approvals", "list", "--json")
        waiting = json.loads(listed.stdout)["waiting"][0]["id"]
        command(service.home, "approvals", "deny", waiting)
        call.join(30)
        assert answers[0]["ok"] is False and keep.exists()


CONTRAST = """(() => {
  const rgb = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = c => { const s = c / 255; return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4; };
  const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
  const behind = one => { for (let at = one; at; at = at.parentElement) {
    const found = rgb(getComputedStyle(at).backgroundColor); if (found.length === 3 || found[3] === 1) return found; }
    return [255, 255, 255]; };
  const seen = [...document.querySelectorAll("h1,h2,p,a,pre,button,span,strong")].filter(one => one.innerText && one.offsetParent);
  return Math.min(...seen.map(one => { const a = luminance(rgb(getComputedStyle(one).color)), b = luminance(behind(one));
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); }));
})()"""


@pytest.mark.skipif(shutil.which("chromium") is None, reason="not installed: chromium")
def test_at_360_pixels_it_is_legible_counts_down_and_loses_what_expired(service: Service, tmp_path: Path) -> None:
    (service.root / "keep.txt").write_text("kept")
    with phone(tmp_path / "profile") as browser:
        browser.send("Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=2, mobile=True)
        browser.open(link(service))
        browser.until("document.body.innerText.includes('Nothing waits')")
        http = service.http()
        wanted = {"op": "file.delete", "target": "keep.txt"}
        request = {"scope": "app", "op": "confirm.issue", "input": wanted, "options": {"ttlSeconds": 15}}
        assert http.control("computer_operation", **request)["ok"]
        http.close()
        browser.until("!!document.querySelector('section[data-id] .left')")
        browser.eval("window.first = document.querySelector('.left').textContent")
        assert browser.eval("document.documentElement.scrollWidth") <= 360
        assert browser.eval(CONTRAST) >= 4.5
        assert browser.eval("document.querySelector('meta[http-equiv=refresh]')") is None
        browser.until("!document.querySelector('.left') || document.querySelector('.left').textContent != window.first")
        browser.until(
            "!document.querySelector('section[data-id]') && document.body.innerText.includes('Nothing waits')"
        )
    assert (service.root / "keep.txt").exists()


@pytest.mark.skipif(shutil.which("chromium") is None, reason="not installed: chromium")
def test_nothing_moves_under_a_thumb_when_a_client_takes_a_request_back(service: Service, tmp_path: Path) -> None:
    """A client that withdraws a request must not slide another one's button to where the person is about to touch."""
    link_to = service.http()
    for name, seconds in (("first", 10), ("second", 60)):
        wanted = {"op": "file.mkdir", "target": name}
        request = {"scope": "app", "op": "confirm.issue", "input": wanted, "options": {"ttlSeconds": seconds}}
        assert link_to.control("computer_operation", **request)["ok"]
    link_to.close()
    place = "document.querySelectorAll('section[data-id]')[1].getBoundingClientRect().top"
    with phone(tmp_path / "profile") as browser:
        browser.open(link(service))
        browser.until("document.querySelectorAll('section[data-id]').length == 2")
        browser.eval(f"window.place = {place}")
        browser.until("getComputedStyle(document.querySelector('section[data-id]')).visibility == 'hidden'")
        assert browser.eval(f"{place} == window.place")
        assert browser.eval("document.querySelector('section[data-id]').inert") is True
    assert not (service.root / "first").exists() and not (service.root / "second").exists()


@pytest.mark.skipif(shutil.which("chromium") is None, reason="not installed: chromium")
def test_a_request_that_just_came_up_takes_no_touch_yet(service: Service, tmp_path: Path) -> None:
    """The page loads itself again for a new request: a touch meant for what was there before does nothing."""
    with phone(tmp_path / "profile") as browser:
        browser.open(link(service))
        browser.until("document.body.innerText.includes('Nothing waits')")
        browser.send("Page.enable")
        source = "addEventListener('DOMContentLoaded', () => { window.begun = document.querySelectorAll('button:enabled').length })"
        browser.send("Page.addScriptToEvaluateOnNewDocument", source=source)
        caller = service.http()
        wanted = {"op": "file.mkdir", "target": "third"}
        assert caller.control("computer_operation", scope="app", op="confirm.issue", input=wanted)["ok"]
        caller.close()
        browser.until("document.querySelectorAll('button').length > 1")
        assert browser.eval("window.begun") == 0
        browser.until("document.querySelectorAll('button:enabled').length > 1")
    assert not (service.root / "third").exists()


def test_a_browsers_cookie_is_worth_nothing_at_another_address(service: Service) -> None:
    """Cookies are sent to every port of a host: a server that a client runs there could receive this one."""
    mine = service.http()
    mine.send("GET", path_of(link(service)))
    cookie = {"cookie": mine.headers["set-cookie"].partition(";")[0]}
    assert mine.send("GET", "/approve", headers=cookie)[0] == 200
    mine.close()
    other = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30, source_address=("127.0.0.2", 0))
    for path in ("/approve", "/approve/state"):
        other.request("GET", path, headers=cookie)
        answer = other.getresponse()
        assert answer.status == 403 and b"<form" not in answer.read()
    other.close()


def test_an_opened_page_is_listed_recorded_and_closed(service: Service) -> None:
    owner(service, "approvals", "close")
    answer, http = link(service), service.http()
    assert http.send("GET", path_of(answer))[0] == 303
    cookie = http.headers["set-cookie"].partition(";")[0]
    [page] = json.loads(owner(service, "approvals", "list", "--json"))["pages"]
    assert page["address"] == "127.0.0.1" and page["id"] in owner(service, "approvals", "list")
    assert "opened the approval page" in owner(service, "history")
    assert http.send("GET", "/approve", headers={"Cookie": cookie})[0] == 200
    assert owner(service, "approvals", "close", page["id"]) == "Closed 1 page.\n"
    assert http.send("GET", "/approve", headers={"Cookie": cookie})[0] == 403
    assert json.loads(owner(service, "approvals", "list", "--json"))["pages"] == []
    http.close()


def test_a_page_that_was_open_stays_closed_when_the_page_is_switched_off_and_on(service: Service) -> None:
    answer, http = link(service), service.http()
    assert http.send("GET", path_of(answer))[0] == 303
    cookie = {"Cookie": http.headers["set-cookie"].partition(";")[0]}
    unused = path_of(link(service))
    owner(service, "config", "set", "approvalPage", "false")
    assert http.send("GET", "/approve", headers=cookie)[0] == 404
    owner(service, "config", "set", "approvalPage", "true")
    assert http.send("GET", "/approve", headers=cookie)[0] == 403
    assert http.send("GET", unused)[0] == 403
    http.close()


def test_a_form_that_another_site_sent_answers_nothing(service: Service) -> None:
    """Also with the page's own secret and cookie, which a browser would not send."""
    (service.root / "keep.txt").write_text("kept")
    answer, http = link(service), service.http()
    assert http.send("GET", path_of(answer))[0] == 303
    cookie = {"Cookie": http.headers["set-cookie"].partition(";")[0]}
    answers: list[Any] = []
    http.send("GET", "/approve", headers=cookie)
    call = ask(service, answers)
    [waiting] = wait_for(lambda: json.loads(http.send("GET", "/approve/state", headers=cookie)[1]))
    secret = re.search(rb'name="?csrf"? value="?([\w-]+)', http.send("GET", "/approve", headers=cookie)[1])
    assert secret is not None
    form = b"id=" + waiting.encode() + b"&csrf=" + secret[1]
    sent = {**cookie, "content-type": "application/x-www-form-urlencoded"}
    for site in ("cross-site", "same-site"):
        given = form + b"&answer=allow"
        assert http.send("POST", "/approve", given, headers={**sent, "Sec-Fetch-Site": site})[0] == 403
    still = http.send("GET", "/approve", headers=cookie)[1]
    assert http.send("POST", "/approve", form + b"&answer=deny", headers=sent)[0] == 303
    http.close()
    call.join(60)
    assert waiting.encode() in still and answers[0]["ok"] is False and (service.root / "keep.txt").exists()
