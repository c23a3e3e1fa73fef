"""Attacks on the way in by OAuth, sent as a stranger at the public name would send them: no code, no redirect, no token."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from attacks.ground import told_to_the_owner
from support.commands import command
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
from support.service import META, PROGRAM, TOKEN, Service, environment, modern_headers, rpc, serving, wait_for
from support.sleepers import running

PUBLIC = "https://x.example"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("oauth"), token=TOKEN, publicBaseUrl=PUBLIC) as running:
        yield running


@pytest.fixture
def browser(service: Service) -> PublicBrowser:
    return PublicBrowser(service.base, PUBLIC)


@pytest.fixture(scope="module")
def client(service: Service) -> str:
    return register(PublicBrowser(service.base, PUBLIC), WEB, CALLBACK)


def asked(client: str, challenge: str, redirect: str, rest: str = "&code_challenge_method=S256") -> str:
    """An authorization request as it is typed into an address bar: nothing in it is encoded."""
    return (
        f"/authorize?response_type=code&client_id={client}&redirect_uri={redirect}&code_challenge={challenge}{rest}"
        f"&state=s&resource={PUBLIC}/mcp"
    )


@pytest.mark.parametrize(
    ("case", "redirect"),
    [
        ("OAUTH-001", "https://evil.example/cb"),
        ("OAUTH-008", "javascript:alert(1)"),
        ("OAUTH-010", "https://GOOD.example/cb"),
        ("OAUTH-011", "https://good.example:444/cb"),
        ("the default port said", "https://good.example:443/cb"),
        ("a path below", "https://good.example/cb/../evil"),
        ("a longer name", "https://good.example.evil.example/cb"),
        ("a user in front", "https://good.example@evil.example/cb"),
        ("a user behind", "https://evil.example%40good.example/cb"),
        ("a backslash", "https://evil.example\\@good.example/cb"),
        ("a tab", "https://good.example/c%09b"),
        ("an end of line", "https://good.example/cb%0d%0aSet-Cookie:%20a=b"),
        ("twice encoded", "https%253A%252F%252Fgood.example%252Fcb"),
        ("no encryption", "http://good.example/cb"),
        ("a final dot", "https://good.example./cb"),
        ("another name for here", "http://127.1:7777/cb"),
        ("the same as a number", "http://2130706433:7777/cb"),
        ("localhost", "http://localhost:7777/cb"),
        ("loopback on another port", "http://127.0.0.1:7778/cb"),
        ("a fragment", "https://good.example/cb%23"),
        ("a question mark", "https://good.example/cb?"),
        ("data", "data:text/html,x"),
        ("a lone letter of another alphabet", "https://g%D0%BEod.example/cb"),
        ("nothing", ""),
        ("two", "https://good.example/cb&redirect_uri=https://evil.example/cb"),
    ],
)
def test_a_redirect_that_was_not_registered_is_never_followed(
    browser: PublicBrowser, client: str, case: str, redirect: str
) -> None:
    status, headers, page = browser.send("GET", asked(client, pkce()[1], redirect))
    assert status == 400, case
    assert "location" not in headers and "set-cookie" not in headers
    assert "evil" not in page and "<script" not in page


@pytest.mark.parametrize(
    ("case", "rest", "error"),
    [
        ("OAUTH-016", "&code_challenge_method=plain", "invalid_request"),
        ("OAUTH-017", "", "invalid_request"),
        ("the method in lower case", "&code_challenge_method=s256", "invalid_request"),
        ("two methods", "&code_challenge_method=S256&code_challenge_method=plain", "invalid_request"),
        ("two challenges", "&code_challenge_method=S256&code_challenge=" + "A" * 43, "invalid_request"),
        ("an answer in the fragment", "&code_challenge_method=S256&response_mode=fragment", "invalid_request"),
        ("an answer by a form", "&code_challenge_method=S256&response_mode=form_post", "invalid_request"),
        ("a request by reference", "&code_challenge_method=S256&request_uri=http://169.254.169.254/", "request_uri_not_supported"),
        ("a request inside", "&code_challenge_method=S256&request=eyJhbGciOiJub25lIn0.e30.", "request_not_supported"),
        ("a second resource", "&code_challenge_method=S256&resource=https://evil.example/mcp", "invalid_request"),
        ("two states", "&code_challenge_method=S256&state=t", "invalid_request"),
    ],
)  # fmt: skip
def test_a_request_that_could_mean_two_things_gets_no_code(
    browser: PublicBrowser, client: str, case: str, rest: str, error: str
) -> None:
    status, headers, _ = browser.send("GET", asked(client, pkce()[1], WEB, rest))
    assert status == 302 and headers["location"].startswith(f"{WEB}?"), case
    told = code_from(headers)
    assert (told["error"], told["iss"]) == (error, PUBLIC) and "code" not in told


@pytest.mark.parametrize("challenge", ["", "A" * 42, "A" * 44, "A" * 42 + "%3D", "A" * 42 + "+", "%00" * 43])
def test_a_challenge_that_is_no_digest_gets_no_code(browser: PublicBrowser, client: str, challenge: str) -> None:
    status, headers, _ = browser.send("GET", asked(client, challenge, WEB))
    assert (status, code_from(headers)["error"]) == (302, "invalid_request")


@pytest.mark.parametrize("case", ["OAUTH-019", "OAUTH-020"])
def test_a_wrong_verifier_burns_the_code(browser: PublicBrowser, client: str, case: str) -> None:
    verifier, challenge = pkce()
    _, headers, _ = consent(browser, query(browser, client, challenge, redirect_uri=WEB))
    code = code_from(headers)["code"]
    wrong = {"OAUTH-019": "A" * 43, "OAUTH-020": challenge}[case]
    status, told = exchange(browser, client, code, wrong, redirect_uri=WEB, resource=f"{PUBLIC}/mcp")
    assert (status, told["error"]) == (400, "invalid_grant")
    status, told = exchange(browser, client, code, verifier, redirect_uri=WEB)
    assert (status, told["error"]) == (400, "invalid_grant"), "there is no second try"


@pytest.mark.parametrize(
    ("case", "redirect"),
    [("OAUTH-037", "javascript:alert(1)"), ("data", "data:text/html,x"), ("a file", "file:///etc/passwd"),
     ("a program's own scheme", "cursor://x/cb"), ("a web page's view", "view-source:https://good.example/cb"),
     ("a hidden script", "https://good.example/cb\u2028javascript:x"), ("none", None), ("deep", [["https://a.example/cb"]])],
)  # fmt: skip
def test_registering_what_is_no_plain_address_is_refused(browser: PublicBrowser, case: str, redirect: Any) -> None:
    about = {"redirect_uris": [redirect], "logo_uri": "http://169.254.169.254/"}
    status, told = browser.json("/register", about)
    assert (status, told["error"]) == (400, "invalid_redirect_uri"), case
    assert "client_id" not in told


def test_a_client_named_by_an_address_inside_is_nobody(browser: PublicBrowser) -> None:
    """OAUTH-038."""
    status, headers, page = browser.send("GET", asked("http://169.254.169.254/c.json", pkce()[1], WEB))
    assert status == 400 and "location" not in headers and "169.254" not in page


def test_an_approved_client_that_wants_its_code_elsewhere_is_asked_about_again(
    browser: PublicBrowser, client: str
) -> None:
    """OAUTH-048: and so is one that wants it at the same place once more."""
    verifier, challenge = pkce()
    code = code_from(consent(browser, query(browser, client, challenge, redirect_uri=WEB))[1])["code"]
    assert exchange(browser, client, code, verifier, redirect_uri=WEB)[0] == 200
    for redirect, place in ((CALLBACK, "127.0.0.1:7777"), (WEB, "good.example")):
        status, headers, page = browser.send("GET", asked(client, challenge, redirect))
        assert status == 200 and "location" not in headers
        assert "owner_token" in page and f"<code>{place}</code>" in page
        assert "frame-ancestors 'none'" in headers["content-security-policy"]


def post(browser: Browser, message: dict[str, Any], token: str) -> tuple[int, str]:
    given = {**modern_headers(message["method"], message["params"]), "Accept": "application/json, text/event-stream"}
    given |= {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    status, _, text = browser.send("POST", "/mcp", json.dumps(message), **given)
    return status, text


def works(browser: Browser, token: str) -> int:
    return post(browser, rpc(1, "tools/list", {"_meta": META}), token)[0]


def test_a_new_owner_token_ends_the_sessions_and_what_they_had_running(tmp_path: Path) -> None:
    """OAUTH-053: `token rotate --revoke`."""
    with serving(tmp_path, token=TOKEN, publicBaseUrl=PUBLIC) as service:
        browser = PublicBrowser(service.base, PUBLIC)
        client, issued = tokens(browser, group=["linker:run"])
        assert works(browser, issued["access_token"]) == 200
        begin = {"scope": "app", "op": "command.start", "target": ".", "input": {"command": ["sleep", "60.4713"]}}
        params = {"name": "computer_operation", "arguments": begin, "_meta": META}
        _, text = post(browser, rpc(1, "tools/call", params), issued["access_token"])
        assert json.loads(json.loads(text)["result"]["content"][0]["text"])["ok"], text
        assert wait_for(lambda: running("4713"))
        rotated = command(service.home, "token", "rotate", "--revoke")
        assert rotated.returncode == 0, rotated.stderr
        assert works(browser, issued["access_token"]) == 401
        assert refresh(browser, client, issued["refresh_token"])[1]["error"] == "invalid_grant"
        assert works(browser, TOKEN) == 401
        wait_for(lambda: not running("4713"))
        assert json.loads((service.home / "oauth-state.json").read_text())["families"] == []


@pytest.mark.parametrize("grant", [
    "password", "client_credentials", "implicit", "urn:ietf:params:oauth:grant-type:jwt-bearer", "",
    "urn:ietf:params:oauth:grant-type:token-exchange", "urn:ietf:params:oauth:grant-type:device_code",
])  # fmt: skip
def test_nothing_but_a_code_and_a_refresh_token_is_changed_for_tokens(
    browser: PublicBrowser, client: str, grant: str
) -> None:
    form = {
        "grant_type": grant, "client_id": client, "username": "owner", "password": TOKEN, "assertion": "eyJhbGciOiJub25lIn0.e30.",
        "subject_token": TOKEN, "device_code": "x", "scope": "linker:run",
    }  # fmt: skip
    status, _, text = browser.send("POST", "/token", form)
    assert (status, json.loads(text)["error"]) == (400, "unsupported_grant_type")


def test_a_refresh_token_gives_no_more_than_was_consented_to(browser: PublicBrowser) -> None:
    client, issued = tokens(browser)
    for wanted in ("linker:read linker:run", "linker:desktop", "*"):
        status, told = refresh(browser, client, issued["refresh_token"], scope=wanted)
        assert (status, told["error"]) == (400, "invalid_scope")
    assert refresh(browser, client, issued["refresh_token"])[1]["scope"] == "linker:read"


def test_one_kind_of_token_is_not_another(browser: PublicBrowser) -> None:
    client, issued = tokens(browser)
    verifier, challenge = pkce()
    code = code_from(consent(browser, query(browser, client, challenge))[1])["code"]
    for wrong in (issued["refresh_token"], code, client, verifier, issued["access_token"] + "."):
        assert works(browser, wrong) in (401, 429)
    assert refresh(browser, client, issued["access_token"])[1]["error"] == "invalid_grant"
    assert refresh(browser, client, code)[1]["error"] == "invalid_grant"
    assert exchange(browser, client, issued["access_token"], verifier)[1]["error"] == "invalid_grant"
    assert works(browser, issued["access_token"]) == 200


def test_another_client_cannot_give_a_session_back(browser: PublicBrowser) -> None:
    _, issued = tokens(browser)
    other = register(browser)
    for form in ({"client_id": other}, {"client_id": "client_unknown"}, {}):
        assert browser.send("POST", "/revoke", {"token": issued["access_token"], **form})[0] in (200, 400, 401)
        assert works(browser, issued["access_token"]) == 200


FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403), ({"Origin": "null"}, 403), ({"Origin": "http://x.example"}, 403),
        ({"Content-Type": "text/plain"}, 415), ({"Content-Type": "multipart/form-data; boundary=x"}, 415),
        ({"Content-Type": "application/json"}, 415), ({"Cookie": "__Host-computer-linker-consent=x"}, 400),
    ],
)  # fmt: skip
def test_a_consent_that_another_page_sends_is_none(
    browser: PublicBrowser, client: str, headers: dict[str, str], status: int
) -> None:
    page = browser.send("GET", asked(client, pkce()[1], WEB))[2]
    form = {**hidden(page), "owner_token": TOKEN, "answer": "allow", "group": "linker:run", "scope": "app"}
    answer = browser.send("POST", "/oauth/consent", urlencode(form), **{"Content-Type": FORM, **headers})
    assert answer[0] == status and "location" not in answer[1]


@pytest.mark.parametrize("more", ["answer=deny", "owner_token=x", "csrf=x", "request=x"])
def test_a_consent_with_two_answers_is_none(browser: PublicBrowser, client: str, more: str) -> None:
    page = browser.send("GET", asked(client, pkce()[1], WEB))[2]
    form = {**hidden(page), "owner_token": TOKEN, "answer": "allow", "group": "linker:run", "scope": "app"}
    for body in (f"{more}&{urlencode(form)}", f"{urlencode(form)}&{more}"):
        status, headers, _ = browser.send("POST", "/oauth/consent", body, **{"Content-Type": FORM})
        assert status == 400 and "location" not in headers


def test_what_the_form_says_of_client_and_redirect_counts_for_nothing(browser: PublicBrowser, client: str) -> None:
    evil = {
        "redirect_uri": "https://evil.example/cb",
        "client_id": "x",
        "state": "evil",
        "resource": "https://evil.example",
    }
    _, headers, _ = consent(browser, asked(client, pkce()[1], WEB), **evil)
    assert headers["location"].startswith(f"{WEB}?code=") and "evil" not in headers["location"]


def test_strangers_who_ask_without_end_do_not_end_the_owners_request(
    service: Service, browser: PublicBrowser, client: str
) -> None:
    verifier, challenge = pkce()
    page = browser.send("GET", asked(client, challenge, WEB))[2]
    form = {**hidden(page), "owner_token": TOKEN, "answer": "allow", "group": "linker:read", "scope": "app"}
    stranger = PublicBrowser(service.base, PUBLIC)
    crowd = register(stranger)
    for _ in range(600):
        assert stranger.send("GET", asked(crowd, challenge, WEB))[0] == 200
    status, headers, _ = browser.send("POST", "/oauth/consent", form)
    assert status == 302
    assert exchange(browser, client, code_from(headers)["code"], verifier, redirect_uri=WEB)[0] == 200


def test_a_state_without_measure_is_not_kept(browser: PublicBrowser, client: str) -> None:
    status, headers, _ = browser.send(
        "GET", asked(client, pkce()[1], WEB).replace("&state=s", f"&state={'s' * 20_000}")
    )
    assert (status, code_from(headers)["error"]) == (302, "invalid_request")


def history(service: Service, field: str) -> list[Any]:
    """One field of what happened lately, the newest first, as the owner reads it at the computer."""
    return [event.get(field) for event in told_to_the_owner(service)]


def test_the_owner_can_read_who_was_let_in_and_who_tried(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN, publicBaseUrl=PUBLIC) as service:
        browser = PublicBrowser(service.base, PUBLIC)
        client, issued = tokens(browser)
        assert "oauth.consent" in history(service, "op")
        assert "Probe" in history(service, "client")
        consent(browser, query(browser, client, pkce()[1]), owner_token="a-wrong-guess-0123456789")
        assert "wrong_owner_token" in history(service, "reason")
        params = {"name": "computer_operation", "_meta": META}
        params["arguments"] = {"scope": "app", "op": "file.write", "target": "a", "input": {"content": "x"}}
        assert post(browser, rpc(1, "tools/call", params), issued["access_token"])[0] == 403
        newest = told_to_the_owner(service)[0]
        assert (newest["op"], newest["scope"], newest["reason"], newest["ok"]) == ("file.write", "app", "grant", False)
        assert not (service.root / "a").exists()
        assert "token_used_twice" not in history(service, "reason")
        assert refresh(browser, client, issued["refresh_token"])[0] == 200
        assert refresh(browser, client, issued["refresh_token"])[0] == 400
        assert "token_used_twice" in history(service, "reason")
        kept = b"".join(file.read_bytes() for file in (service.home / "audit").rglob("*") if file.is_file())
        for secret in ("a-wrong-guess", issued["refresh_token"], issued["access_token"], TOKEN):
            assert secret.encode() not in kept


def test_a_clients_name_writes_nothing_but_itself_to_the_owners_terminal(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN, publicBaseUrl=PUBLIC) as service:
        browser = PublicBrowser(service.base, PUBLIC)
        name = "Probe\x1b[2J\x9b31m\u202e\r\nsession_0000  Forged"
        _, made = browser.json("/register", {"redirect_uris": [WEB], "client_name": name})
        assert consent(browser, asked(made["client_id"], pkce()[1], WEB))[0] == 302
        for words in (["sessions", "list"], ["history"], ["history", "--view", "connections"]):
            done = subprocess.run([*PROGRAM, *words], env=environment(service.home), capture_output=True, timeout=240)
            shown = done.stdout.decode()
            assert done.returncode == 0 and shown
            assert not set("\x1b\x9b\u202e\r") & set(shown)
            assert not any(line.startswith("session_0000") for line in shown.splitlines())
