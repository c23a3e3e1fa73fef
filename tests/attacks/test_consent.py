"""The consent page against somebody who began the request, and wants the owner's token to end it for them."""

from collections.abc import Iterator
from typing import Any

import pytest

from support.oauth import Browser, hidden, pkce, query, register
from support.road import folder_scope
from support.service import TOKEN, Service, serving

PUBLIC = "https://linker.example"
AT_PUBLIC = {"Host": "linker.example", "X-Forwarded-Proto": "https"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("consent")
    scopes = [folder_scope(folder / "root"), folder_scope(folder / "root", "private")]
    with serving(folder, token=TOKEN, publicBaseUrl=PUBLIC, scopes=scopes) as running:
        yield running


def begun(browser: Browser, base: str, **headers: str) -> dict[str, str]:
    """What the form of a consent page holds, for the browser that began the request."""
    path = query(browser, register(browser), pkce()[1], resource=f"{base}/mcp")
    return hidden(browser.send("GET", path, **headers)[2])


def test_who_knew_the_form_before_the_token_came_cannot_end_it(service: Service) -> None:
    """A page of another port of this machine can set our cookie: the owner then types the token into a stranger's request."""
    thief, owner = Browser(service.base), Browser(service.base)
    known = begun(thief, service.base)
    owner._cookies.update(thief._cookies)
    status, _, page = owner.send("POST", "/oauth/consent", {**known, "owner_token": TOKEN, "answer": "allow"})
    assert status == 200 and "What it may do" in page
    chosen: dict[str, Any] = {"answer": "allow", "group": ["linker:run"], "scope": ["app", "private"]}
    for form in ({**known, **chosen}, {**hidden(page), **chosen}):
        status, headers, text = thief.send("POST", "/oauth/consent", form)
        assert status == 400 and "location" not in headers and "private" not in text
    status, headers, _ = owner.send("POST", "/oauth/consent", {**hidden(page), **chosen, "scope": ["app"]})
    assert status == 302 and "code=" in headers["location"]


def test_a_cookie_that_a_neighbouring_host_can_set_does_not_count_over_https(service: Service) -> None:
    thief, owner = Browser(service.base), Browser(service.base)
    known = begun(thief, PUBLIC, **AT_PUBLIC)
    (value,) = thief._cookies.values()
    owner._cookies["computer-linker-consent"] = value
    right = {**known, "owner_token": TOKEN, "answer": "allow"}
    status, headers, _ = owner.send("POST", "/oauth/consent", right, **AT_PUBLIC)
    assert status == 400 and "location" not in headers
    assert thief.send("POST", "/oauth/consent", right, **AT_PUBLIC)[0] == 200, "with its own name it does"


def test_guessing_the_owner_token_on_the_page_is_answered_with_a_wait(service: Service) -> None:
    seen = []
    for number in range(4):
        browser = Browser(service.base)
        form = begun(browser, service.base)
        for guess in range(4):
            answer = {**form, "owner_token": f"guess-{number}-{guess}", "answer": "allow"}
            status, headers, _ = browser.send("POST", "/oauth/consent", answer)
            seen.append(status)
            assert "location" not in headers and (status != 429 or int(headers["retry-after"]) > 0)
    assert set(seen[:10]) <= {403} and set(seen[10:]) == {429}
    browser = Browser(service.base)
    form = begun(browser, service.base)
    assert browser.send("POST", "/oauth/consent", {**form, "owner_token": TOKEN, "answer": "allow"})[0] == 200
