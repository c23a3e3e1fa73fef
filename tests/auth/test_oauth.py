"""OAuth over a real service: an honest client gets in, and nobody else."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.commands import command
from support.oauth import WEB, Browser, code_from, consent, exchange, hidden, pkce, query, register, tokens
from support.road import folder_scope
from support.service import MODERN, TOKEN, Service, serving, write_config


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("oauth"), token=TOKEN) as running:
        (running.root / "a.txt").write_text("hello")
        yield running


def call(
    service: Service, token: str, op: str = "file.read", target: str = "a.txt", **parts: Any
) -> tuple[int, Any, str]:
    browser = Browser(service.base)
    arguments = {"scope": "app", "op": op, "target": target, **parts}
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = {
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "computer_operation", "arguments": arguments, "_meta": meta},
    }  # fmt: skip
    headers = {
        "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": f"Bearer {token}",
        "Mcp-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "computer_operation",
    }  # fmt: skip
    status, told, text = browser.send("POST", "/mcp", json.dumps(body), **headers)
    return status, json.loads(text), told.get("www-authenticate", "")


def test_an_honest_client_reads_what_the_owner_gave_and_steps_up_for_more(service: Service) -> None:
    """OAUTH-031."""
    browser = Browser(service.base)
    _client, issued = tokens(browser)
    status, answer, _ = call(service, issued["access_token"])
    assert (status, answer["result"]["structuredContent"]["data"]["content"]) == (200, "hello")
    status, _, challenge = call(service, issued["access_token"], "file.write", "b.txt", input={"content": "x"})
    assert status == 403
    assert 'error="insufficient_scope"' in challenge
    assert 'scope="linker:read linker:write"' in challenge, "what it has, and what it lacks"
    assert not (service.root / "b.txt").exists()
    assert issued["scope"] == "linker:read"


def test_the_owner_may_give_more_than_was_asked_for(service: Service) -> None:
    """A client that asks for little and cannot ask again would otherwise never be given more."""
    browser = Browser(service.base)
    client, (verifier, challenge) = register(browser), pkce()
    path = query(browser, client, challenge, scope="linker:read")
    code = code_from(consent(browser, path, group=["linker:read", "linker:write", "linker:everything"])[1])["code"]
    status, issued = exchange(browser, client, code, verifier)
    assert (status, issued["scope"]) == (200, "linker:read linker:write")
    assert call(service, issued["access_token"], "file.create", "more.txt", input={"content": "x"})[0] == 200


def test_an_approver_reads_the_name_that_was_consented_to(tmp_path: Path) -> None:
    """What the client calls itself afterwards stands beside it, and replaces it nowhere."""
    with serving(tmp_path, token=TOKEN, scopes=[folder_scope(tmp_path / "root", confirm="all")]) as service:
        _client, issued = tokens(Browser(service.base), group=["linker:read", "linker:write"])
        status, answer, _ = call(service, issued["access_token"], "file.create", "b.txt", input={"content": "x"})
        assert status == 200 and answer["result"]["isError"], answer
        shown = command(service.home, "approvals", "list").stdout
        assert 'OAuth client "Probe"' in shown, shown
        assert not (service.root / "b.txt").exists()


def test_without_a_token_the_challenge_names_the_metadata(service: Service) -> None:
    status, _, _challenge = call(service, "nonsense")
    assert status in (401, 429)
    browser = Browser(service.base)
    status, headers, _ = browser.send("POST", "/mcp", "{}", **{"Content-Type": "application/json"})
    assert status == 401
    where = re.search(r'resource_metadata="http://[^/]+(/[^"]+)"', headers["www-authenticate"])
    assert where is not None
    status, _, text = browser.send("GET", where.group(1))
    document = json.loads(text)
    assert document["resource"] == service.url
    status, _, text = browser.send("GET", "/.well-known/oauth-authorization-server")
    server = json.loads(text)
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert server["issuer"] == document["authorization_servers"][0]


@pytest.mark.parametrize(
    "redirect",
    ["https://evil.example/cb", "javascript:alert(1)", "https://GOOD.example/cb", "https://good.example:444/cb",
     "https://good.example/cb/", "https://good.example/cb?x=1", "https://good.example/CB", "http://good.example/cb",
     "http://127.0.0.1:7778/cb", "http://localhost:7777/cb", "https://good.example/cb#f", "//good.example/cb", ""],
)  # fmt: skip
def test_a_redirect_that_was_not_registered_to_the_letter_gets_an_error_page(service: Service, redirect: str) -> None:
    browser = Browser(service.base)
    client = register(browser)
    status, headers, page = browser.send("GET", query(browser, client, pkce()[1], redirect_uri=redirect))
    assert status == 400
    assert "location" not in headers
    assert "<script" not in page


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge": ""}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"resource": "https://other.example/mcp"}, "invalid_target"),
    ],
)
def test_a_request_without_proof_or_for_another_server_gets_no_code(service: Service, changes: Any, error: str) -> None:
    browser = Browser(service.base)
    client = register(browser)
    status, headers, _ = browser.send("GET", query(browser, client, pkce()[1], **changes))
    told = code_from(headers)
    assert (status, told["error"]) == (302, error)
    assert "code" not in told


@pytest.mark.parametrize(
    "redirect",
    ["javascript:alert(1)", "http://example.com/cb", "data:text/html,x", "https://a@b/cb", 5, "https://x/#f"],
)
def test_registration_takes_only_https_and_loopback(service: Service, redirect: Any) -> None:
    status, told = Browser(service.base).json(
        "/register", {"redirect_uris": [redirect], "logo_uri": "http://169.254.169.254/"}
    )
    assert (status, told["error"]) == (400, "invalid_redirect_uri")


@pytest.mark.parametrize("client", ["http://169.254.169.254/c.json", "https://169.254.169.254/c.json", "https://127.0.0.1/c.json",
                                    "https://[::1]/c.json", "https://localhost/c.json", "client_unknown"])  # fmt: skip
def test_a_client_document_inside_the_network_is_never_fetched(service: Service, client: str) -> None:
    browser = Browser(service.base)
    status, headers, _ = browser.send("GET", query(browser, client, pkce()[1], redirect_uri=WEB))
    assert status == 400
    assert "location" not in headers


def test_a_code_is_good_once_and_burns_with_a_wrong_verifier(service: Service) -> None:
    browser = Browser(service.base)
    client, (verifier, challenge) = register(browser), pkce()
    answer = code_from(consent(browser, query(browser, client, challenge))[1])
    for wrong in (challenge, "A" * 43):
        assert exchange(browser, client, answer["code"], wrong)[0] == 400
    assert exchange(browser, client, answer["code"], verifier) == (
        400,
        exchange(browser, client, answer["code"], verifier)[1],
    )
    answer = code_from(consent(browser, query(browser, client, challenge))[1])
    assert exchange(browser, client, answer["code"], verifier)[0] == 200
    assert exchange(browser, client, answer["code"], verifier)[0] == 400


def test_another_client_or_redirect_cannot_use_the_code(service: Service) -> None:
    browser = Browser(service.base)
    client, (verifier, challenge) = register(browser), pkce()
    other = register(browser)
    answer = code_from(consent(browser, query(browser, client, challenge))[1])
    assert exchange(browser, other, answer["code"], verifier)[0] == 400
    answer = code_from(consent(browser, query(browser, client, challenge))[1])
    assert exchange(browser, client, answer["code"], verifier, redirect_uri=WEB)[0] == 400


def test_a_refresh_token_used_twice_ends_the_whole_session(service: Service) -> None:
    browser = Browser(service.base)
    client, first = tokens(browser)
    form = {"grant_type": "refresh_token", "refresh_token": first["refresh_token"], "client_id": client}
    status, _, text = browser.send("POST", "/token", form)
    second = json.loads(text)
    assert status == 200
    assert second["refresh_token"] != first["refresh_token"]
    assert call(service, second["access_token"])[0] == 200
    assert browser.send("POST", "/token", form)[0] == 400
    assert call(service, second["access_token"])[0] in (401, 429)
    form["refresh_token"] = second["refresh_token"]
    assert browser.send("POST", "/token", form)[0] == 400


def test_consent_needs_the_owner_the_form_and_the_same_browser(service: Service) -> None:
    browser = Browser(service.base)
    client, (_, challenge) = register(browser), pkce()
    path = query(browser, client, challenge)
    changes: dict[str, Any]
    for changes in ({"owner_token": "wrong"}, {"csrf": "wrong"}, {"request": "wrong"}, {"scope": []}, {"group": []}):
        status, headers, _ = consent(browser, path, **changes)
        assert status in (400, 403), changes
        assert "location" not in headers
    status, headers, _ = consent(browser, path, answer="deny")
    assert code_from(headers)["error"] == "access_denied"
    right = {**hidden(browser.send("GET", path)[2]), "group": "linker:read", "scope": "app", "owner_token": TOKEN}
    status, headers, _ = Browser(service.base).send("POST", "/oauth/consent", {**right, "answer": "allow"})
    assert status == 400 and "location" not in headers


def test_the_consent_page_cannot_be_framed_and_shows_who_asks(service: Service) -> None:
    browser = Browser(service.base)
    _, client = browser.json("/register", {"redirect_uris": [WEB], "client_name": "<script>alert(1)</script>\u202e"})
    _, headers, page = browser.send("GET", query(browser, client["client_id"], pkce()[1], redirect_uri=WEB))
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "<script" not in page
    assert "\u202e" not in page
    assert "good.example" in page


def test_what_is_stored_opens_nothing(service: Service) -> None:
    """OAUTH-051."""
    browser = Browser(service.base)
    _, issued = tokens(browser)
    path = service.home / "oauth-state.json"
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text()
    assert issued["access_token"] not in text
    assert issued["refresh_token"] not in text
    assert TOKEN not in text
    for stored in set(re.findall(r'"([\w.:/-]{16,})"', text)):
        assert call(service, stored)[0] in (401, 429)


def test_a_new_owner_token_ends_every_session_it_gave(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN) as service:
        (service.root / "a.txt").write_text("hello")
        _, issued = tokens(Browser(service.base))
        assert call(service, issued["access_token"])[0] == 200
        write_config(service.home, service.root, token="another-owner-token-0123456789", port=service.port)
        assert call(service, issued["access_token"])[0] == 401


def test_a_token_is_good_for_mcp_alone(service: Service) -> None:
    browser = Browser(service.base)
    _, issued = tokens(browser)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {issued['access_token']}"}
    body = json.dumps({"action": "computer_operation", "scope": "app", "op": "file.read", "target": "a.txt"})
    assert browser.send("POST", "/api/v1/control", body, **headers)[0] in (401, 429)
    path = f"/mcp?access_token={issued['access_token']}"
    assert browser.send("POST", path, "{}", **{"Content-Type": "application/json"})[0] == 401


def test_a_session_survives_a_restart(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN) as service:
        (service.root / "a.txt").write_text("hello")
        write_config(service.home, service.root, token=TOKEN, port=service.port)
        _, issued = tokens(Browser(service.base))
        port = service.port
    with serving(tmp_path, token=TOKEN) as again:
        assert again.port != port or call(again, issued["access_token"])[0] == 200


def test_a_client_without_a_secret_can_give_its_access_back(service: Service) -> None:
    browser = Browser(service.base)
    client, issued = tokens(browser)
    form = {"token": issued["refresh_token"], "client_id": client}
    assert browser.send("POST", "/revoke", form)[0] == 200
    again = {"grant_type": "refresh_token", "refresh_token": issued["refresh_token"], "client_id": client}
    assert browser.send("POST", "/token", again)[0] == 400
