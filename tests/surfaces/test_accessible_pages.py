"""The three pages by axe in a real browser: no violation, at a phone's width and at a desktop's."""

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.browser import Phone, phone
from support.node import axe_core, needed
from support.oauth import Browser, pkce, query, register
from support.road import folder_scope
from support.service import PROGRAM, TOKEN, Service, environment, owner, serving

pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Debian's chromium")
WIDTHS = pytest.mark.parametrize("is_wide", [True, False], ids=["wide", "phone"])


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("pages")
    scopes = [folder_scope(folder / "root", confirm="all")]
    with serving(folder, token=TOKEN, scopes=scopes, approvalPage=True) as running:
        yield running


def violations(page: Phone) -> list[str]:
    """What axe finds in the open page, each with the first element it is about."""
    page.send("Runtime.evaluate", expression=needed(axe_core))
    run = "axe.run().then(found => found.violations.map(one => one.id + ': ' + one.nodes[0].html))"
    found = page.send("Runtime.evaluate", expression=run, awaitPromise=True, returnByValue=True)
    listed: list[str] = found["result"]["value"]
    return listed


@WIDTHS
def test_the_approval_page(service: Service, tmp_path: Path, is_wide: bool) -> None:
    url = json.loads(owner(service, "approvals", "phone", "--json"))["url"]
    answers: list[Any] = []

    def call() -> None:
        with closing(service.http()) as http:
            request = {"scope": "app", "op": "file.write", "target": "new.txt", "input": {"content": "one\ntwo\n"}}
            answers.append(http.control("computer_operation", **request))

    with phone(tmp_path / "profile", is_wide=is_wide) as page:
        page.open(url)
        assert violations(page) == []
        thread = threading.Thread(target=call)
        thread.start()
        page.until("fetch('/approve/state').then(a => a.json()).then(a => a.length == 1) && true")
        page.open(f"{service.base}/approve")
        page.until("document.querySelector('button[value=deny]:enabled') !== null")
        assert violations(page) == []
        page.click("button[value=deny]")
        thread.join(60)
    assert answers[0]["error"]["code"] == "denied_by_person" and not (service.root / "new.txt").exists()


@WIDTHS
def test_the_consent_page(service: Service, tmp_path: Path, is_wide: bool) -> None:
    browser = Browser(service.base)
    with phone(tmp_path / "profile", is_wide=is_wide) as page:
        page.open(service.base + query(browser, register(browser), pkce()[1]))
        page.until("document.querySelector('input[name=owner_token]') !== null")
        assert violations(page) == []


@WIDTHS
def test_the_timeline_page(service: Service, tmp_path: Path, is_wide: bool) -> None:
    with closing(service.http()) as http:
        for op in ("file.list", "file.read"):
            http.control("computer_operation", scope="app", op=op, target="missing")
    place = tmp_path / "timeline.html"
    words = [*PROGRAM, "history", "timeline", "--html", str(place)]
    subprocess.run(words, env=environment(service.home), check=True, capture_output=True, timeout=240)
    with phone(tmp_path / "profile", is_wide=is_wide) as page:
        page.open(place.as_uri())
        assert violations(page) == []
        page.click(".event")
        page.until("document.getElementById('details') !== null")
        assert violations(page) == []
