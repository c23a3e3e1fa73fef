"""Codes and tokens in the wrong hands, too late, or at the wrong address: refused, and what they came from ends where it must."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.oauth import (
    CALLBACK,
    WEB,
    Browser,
    PublicBrowser,
    code_from,
    consent,
    exchange,
    hidden,
    pkce,
    query,
    refresh,
    register,
    tokens,
)  # fmt: skip
from support.service import MODERN, TOKEN, Service, serving, write_config

PUBLIC = "https://linker.example"
MCP = {
    "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
    "Mcp-Protocol-Version": MODERN, "Mcp-Method": "tools/list",
}  # fmt: skip
LIST = json.dumps(
    {
        "jsonrpc": "2.0", "id": 1, "method": "tools/list",
        "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}},
    }
)  # fmt: skip


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("stolen"), token=TOKEN, publicBaseUrl=PUBLIC) as running:
        yield running


def works(browser: Browser, token: str) -> bool:
    status, headers, _ = browser.send("POST", "/mcp", LIST, **MCP, Authorization=f"Bearer {token}")
    assert status in (200, 401, 429)
    assert status != 401 or 'error="invalid_token"' in headers["www-authenticate"]
    return status == 200


def test_a_code_that_comes_twice_ends_what_came_of_it(service: Service) -> None:
    browser = Browser(service.base)
    client, (verifier, challenge) = register(browser), pkce()
    code = code_from(consent(browser, query(browser, client, challenge))[1])["code"]
    status, issued = exchange(browser, client, code, verifier)
    assert status == 200 and works(browser, issued["access_token"])
    thief = Browser(service.base)
    assert exchange(thief, register(thief), code, "A" * 43)[1]["error"] == "invalid_grant"
    assert not works(browser, issued["access_token"])
    assert refresh(browser, client, issued["refresh_token"])[0] == 400


def test_a_stolen_code_is_of_no_use_without_its_verifier(service: Service) -> None:
    browser = Browser(service.base)
    client, (verifier, challenge) = register(browser), pkce()
    code = code_from(consent(browser, query(browser, client, challenge))[1])["code"]
    status, _, text = Browser(service.base).send(
        "POST",
        "/token",
        {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK, "client_id": client},
    )
    assert status in (400, 401) and "access_token" not in text
    # What a thief tried must not be what the owner's own client then finishes.
    assert exchange(browser, client, code, verifier)[0] in (200, 400)


@pytest.mark.parametrize("which", ["access_token", "refresh_token"])
def test_another_clients_name_does_not_help_with_a_stolen_refresh_token(service: Service, which: str) -> None:
    browser = Browser(service.base)
    client, issued = tokens(browser)
    thief = Browser(service.base)
    assert refresh(thief, register(thief), issued[which])[0] == 400
    assert refresh(thief, "client_unknown", issued[which])[0] in (400, 401)
    assert works(browser, issued["access_token"]), "and the honest client goes on"
    assert refresh(browser, client, issued["refresh_token"])[0] == 200


def test_a_token_is_good_only_at_the_address_it_was_given_for(service: Service) -> None:
    here, there = Browser(service.base), PublicBrowser(service.base, PUBLIC)
    client, issued = tokens(here)
    assert works(here, issued["access_token"]) and not works(there, issued["access_token"])
    status, again = refresh(there, client, issued["refresh_token"])
    assert status in (200, 400)
    assert status == 400 or not works(there, again["access_token"]), "nor does refreshing it there move it"
    assert refresh(there, client, issued["refresh_token"], resource=f"{PUBLIC}/mcp")[0] == 400
    _, public = tokens(there)
    assert works(there, public["access_token"]) and not works(here, public["access_token"])


@pytest.mark.parametrize("resource", ["https://other.example/mcp", PUBLIC, f"{PUBLIC}/mcp/", "", "x"])
def test_another_resource_at_the_token_endpoint_gets_no_token_for_it(service: Service, resource: str) -> None:
    browser = Browser(service.base)
    client, (verifier, challenge) = register(browser), pkce()
    code = code_from(consent(browser, query(browser, client, challenge))[1])["code"]
    status, issued = exchange(browser, client, code, verifier, resource=resource)
    assert (status, issued.get("error")) == (400, "invalid_target"), issued


def test_issuers_cannot_be_mixed_up(service: Service) -> None:
    """A request begun at one of our names cannot be ended at the other, and each answer says which one it is from."""
    here, there = Browser(service.base), PublicBrowser(service.base, PUBLIC)
    client, (_, challenge) = register(here), pkce()
    for browser in (here, there):
        told = code_from(consent(browser, query(browser, client, challenge))[1])
        assert told["iss"] == browser.base
        _, _, text = browser.send("GET", "/.well-known/oauth-authorization-server")
        assert json.loads(text)["issuer"] == browser.base
        assert json.loads(text)["token_endpoint"].startswith(browser.base)
    form = {**hidden(here.send("GET", query(here, client, challenge))[2]), "owner_token": TOKEN, "answer": "allow"}
    there._cookies |= here._cookies
    status, headers, page = there.send("POST", "/oauth/consent", form)
    assert status == 400 and "location" not in headers and "csrf" not in page
    status, headers, _ = there.send("GET", query(here, client, challenge))
    assert code_from(headers)["error"] == "invalid_target"


@pytest.mark.parametrize("what", ["access", "refresh", None])
def test_what_has_expired_is_refused(tmp_path: Path, what: str | None) -> None:
    """OAUTH-030."""
    with serving(tmp_path, token=TOKEN) as service:
        client, issued = tokens(Browser(service.base))
    with serving(tmp_path, token=TOKEN) as service:
        file = tmp_path / "home" / "oauth-state.json"
        kept = json.loads(file.read_text())
        # The service reads this with the first request. Its port is a new one, and with it the resource.
        kept["families"][0]["resource"] = service.url
        if what is not None:
            kept["families"][0][what] = dict.fromkeys(kept["families"][0][what], time.time() - 1)
        file.write_text(json.dumps(kept))
        browser = Browser(service.base)
        assert works(browser, issued["access_token"]) is (what != "access")
        status, again = refresh(browser, client, issued["refresh_token"])
        assert (status, again.get("error")) == ((400, "invalid_grant") if what == "refresh" else (200, None))


@pytest.mark.parametrize("path", ["/oauth/consent?request=x&redirect_uri=https://evil.example", "/authorize",
                                  "/authorize?client_id=x&redirect_uri=https://evil.example", "/oauth/consent",
                                  "/authorize?redirect_uri=https://evil.example&error=x"])  # fmt: skip
def test_nobody_is_sent_anywhere_by_a_request_we_do_not_know(service: Service, path: str) -> None:
    for method in ("GET", "POST"):
        status, headers, page = Browser(service.base).send(method, path, {} if method == "POST" else None)
        assert status in (400, 405) and "location" not in headers
        assert "evil.example" not in page


@pytest.mark.parametrize("redirect", ["https://a;script-src/cb", "https://a'b/cb", "https://a,b/cb", "https://a b/cb",
                                      "https://a\tb/cb", "https://[::1/cb", "https://a:99999999/cb", "https://a%0d%0ab/cb"])  # fmt: skip
def test_a_redirect_that_could_become_part_of_a_header_is_not_registered(service: Service, redirect: str) -> None:
    status, told = Browser(service.base).json("/register", {"redirect_uris": [redirect]})
    assert (status, told["error"]) == (400, "invalid_redirect_uri")


def test_parameters_that_come_twice_or_in_hundreds_are_refused(service: Service) -> None:
    browser = Browser(service.base)
    client, (verifier, challenge) = register(browser), pkce()
    path = query(browser, client, challenge)
    status, headers, _ = browser.send("GET", f"{path}&redirect_uri={WEB}")
    assert status == 400 and "location" not in headers
    assert browser.send("GET", path + "&x=1" * 300)[0] == 400
    form = {"grant_type": "authorization_code", "code": "x", "client_id": [client, client], "code_verifier": verifier}
    assert browser.send("POST", "/token", form)[0] == 400
    assert (
        browser.send(
            "POST", "/token", "&".join(["x=1"] * 300), **{"Content-Type": "application/x-www-form-urlencoded"}
        )[0]
        == 400
    )


def test_a_rotated_owner_token_ends_refreshing_too(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN) as service:
        browser = Browser(service.base)
        client, issued = tokens(browser)
        verifier, challenge = pkce()
        late = code_from(consent(browser, query(browser, client, challenge))[1])["code"]
        kept = hidden(browser.send("GET", query(browser, client, challenge))[2])
        status, _, page = browser.send("POST", "/oauth/consent", {**kept, "answer": "allow", "owner_token": TOKEN})
        assert status == 200 and "What it may do" in page
        write_config(service.home, service.root, token="another-owner-token-0123456789", port=service.port)
        assert refresh(browser, client, issued["refresh_token"])[1]["error"] == "invalid_grant"
        assert exchange(browser, client, late, verifier)[1]["error"] == "invalid_grant"
        chosen = {**hidden(page), "answer": "allow", "group": "linker:read", "scope": "app"}
        status, headers, page = browser.send("POST", "/oauth/consent", chosen)
        assert status == 403 and "location" not in headers and "app" not in re.findall(r'value="([^"]+)"', page)
