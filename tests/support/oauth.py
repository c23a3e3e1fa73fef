"""An OAuth client and its user's browser, step by step, so that a test can do any one step wrong."""

import base64
import hashlib
import http.client
import json
import re
import secrets
import ssl
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from support.service import TOKEN

CALLBACK = "http://127.0.0.1:7777/cb"
WEB = "https://good.example/cb"


class Browser:
    """A user agent for one origin with a cookie jar, that follows nothing by itself."""

    def __init__(self, base: str, tls: ssl.SSLContext | None = None) -> None:
        self.base = base
        self._tls = tls
        self._cookies: dict[str, str] = {}

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], str]:
        link = self._link()
        try:
            given = {"Cookie": "; ".join(f"{k}={v}" for k, v in self._cookies.items())} if self._cookies else {}
            raw = urlencode(body, doseq=True) if isinstance(body, dict) else body
            if isinstance(body, dict):
                given["Content-Type"] = "application/x-www-form-urlencoded"
            link.request(method, path, raw, {**given, **headers})
            answer = link.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            if "set-cookie" in told:
                name, _, value = told["set-cookie"].split(";")[0].partition("=")
                self._cookies[name] = value
            return answer.status, told, answer.read().decode()
        finally:
            link.close()

    def json(self, path: str, body: Any) -> tuple[int, Any]:
        status, _, text = self.send("POST", path, json.dumps(body), **{"Content-Type": "application/json"})
        return status, json.loads(text)

    def _link(self) -> http.client.HTTPConnection:
        where = urlsplit(self.base).netloc
        if self._tls is not None:
            return http.client.HTTPSConnection(where, timeout=20, context=self._tls)
        return http.client.HTTPConnection(where, timeout=20)


class PublicBrowser(Browser):
    """The same service as a proxy presents it: the connection is local, the Host is the public one."""

    def __init__(self, local: str, public: str) -> None:
        super().__init__(public)
        self._local = local

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], str]:
        given = {"Host": urlsplit(self.base).netloc, "X-Forwarded-Proto": "https", **headers}
        return super().send(method, path, body, **given)

    def _link(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(urlsplit(self._local).netloc, timeout=20)


def register(browser: Browser, *redirects: str) -> str:
    """A new client's id."""
    status, client = browser.json(
        "/register", {"redirect_uris": list(redirects) or [CALLBACK, WEB], "client_name": "Probe"}
    )
    assert status == 201, client
    assert client["token_endpoint_auth_method"] == "none"
    return str(client["client_id"])


def pkce() -> tuple[str, str]:
    """A verifier and its challenge."""
    verifier = secrets.token_urlsafe(32)
    return verifier, base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def query(browser: Browser, client: str, challenge: str, **changes: str | None) -> str:
    """The path of a right authorization request, with the changes of a test; None leaves a parameter out."""
    values: dict[str, str | None] = {
        "response_type": "code", "client_id": client, "redirect_uri": CALLBACK, "code_challenge": challenge, "state": "s1",
        "code_challenge_method": "S256", "resource": f"{browser.base}/mcp", "scope": "linker:read linker:write", **changes,
    }  # fmt: skip
    return "/authorize?" + urlencode({name: value for name, value in values.items() if value is not None})


def consent(browser: Browser, path: str, **changes: Any) -> tuple[int, dict[str, str], str]:
    """The owner's answer on the consent page that the request leads to."""
    status, headers, page = browser.send("GET", path)
    assert status == 200, headers
    form: dict[str, Any] = {
        **hidden(page), "group": ["linker:read"], "scope": ["app"], "owner_token": TOKEN, "answer": "allow", **changes,
    }  # fmt: skip
    return browser.send("POST", "/oauth/consent", form)


def hidden(page: str) -> dict[str, str]:
    """What the form on a consent page sends back unseen."""
    return dict(re.findall(r'name="(request|csrf)" value="([^"]+)"', page))


def code_from(headers: dict[str, str]) -> dict[str, str]:
    """What the redirect tells the client."""
    return {name: values[0] for name, values in parse_qs(urlsplit(headers["location"]).query).items()}


def exchange(browser: Browser, client: str, code: str, verifier: str, **changes: str) -> tuple[int, Any]:
    """A code for tokens."""
    form = {
        "grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK, "client_id": client,
        "code_verifier": verifier, **changes,
    }  # fmt: skip
    status, _, text = browser.send("POST", "/token", form)
    return status, json.loads(text)


def refresh(browser: Browser, client: str, token: str, **changes: str) -> tuple[int, Any]:
    """A refresh token for new tokens."""
    form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": client, **changes}
    status, _, text = browser.send("POST", "/token", form)
    return status, json.loads(text)


def tokens(browser: Browser, **changes: Any) -> tuple[str, Any]:
    """A client's id and the tokens it got by doing everything right."""
    client, (verifier, challenge) = register(browser), pkce()
    status, headers, _ = consent(browser, query(browser, client, challenge), **changes)
    assert status == 302
    answer = code_from(headers)
    assert answer["iss"] == browser.base
    assert answer["state"] == "s1"
    status, issued = exchange(browser, client, answer["code"], verifier)
    assert status == 200, issued
    return client, issued
