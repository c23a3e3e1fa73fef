"""The steps in a connector's order: reach, discover, register, authorize, token, refresh, then MCP itself."""

import base64
import hashlib
import re
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from computer_linker.service.connector.browser import Answer, Browser, HopFailed
from computer_linker.service.connector.remedies import unexpected

CONSENT = "/oauth/consent"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SLOW_S = 2.0
_SLOW = "Look at the proxy or tunnel in between: limits of rate, buffering, a far region."
_SLOW_HERE = "Nothing is in between: this computer is busy."
_CALLBACK = "http://127.0.0.1:9/computer-linker-diagnose"
_SCOPE = "linker:read"
_VERSION = "2026-07-28"
_META = {
    "io.modelcontextprotocol/protocolVersion": _VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "computer-linker-diagnose", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass
class Play:
    """One run. `owner_token` is used on the consent page of this address, and nowhere else; None leaves OAuth out."""

    url: str
    owner_token: str | None
    steps: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        self._base = f"{parts.scheme}://{parts.netloc}"
        self._path = parts.path or "/mcp"
        self._browser = Browser(self._base)
        self._client = self._code = self._verifier = ""
        self._tokens: dict[str, Any] = {}
        self._wants_token = True

    def run(self) -> None:
        """Play until a hop fails; the rest depends on it."""
        reach: list[tuple[str, Callable[[], str]]] = [("dns", self._dns), ("tcp", self._tcp)]
        if self._browser.is_secure:
            reach.append(("tls", self._tls))
        talk = [("server/discover", self._discover), ("tools/list", self._tools), ("call", self._call)]
        if all(self._try(name, step) for name, step in [*reach, ("challenge", self._challenge)]):
            ready = not self._wants_token or self._authorized()
            if ready:
                all(self._try(name, step) for name, step in talk)
        if self._tokens:
            self._try("revoke", self._revoke)

    def _authorized(self) -> bool:
        discover = [
            ("resource metadata", self._resource),
            ("server metadata", self._server),
            ("register", self._register),
        ]
        if not all(self._try(name, step) for name, step in discover):
            return False
        if self.owner_token is None:
            self.steps.append(
                {"hop": "authorize", "ok": None, "detail": "left out: the owner token is not at hand here"}
            )
            return False
        enter = [("authorize", self._authorize), ("token", self._token), ("refresh", self._refresh)]
        return all(self._try(name, step) for name, step in enter)

    def _try(self, hop: str, step: Callable[[], str]) -> bool:
        started = time.perf_counter()
        told: dict[str, Any] = {"hop": hop, "ok": True}
        try:
            told["detail"] = step()
        except HopFailed as failed:
            told |= {"ok": False, "detail": str(failed), "remedy": failed.remedy}
        took_s = time.perf_counter() - started
        told["durationMs"] = round(took_s * 1000, 1)
        if told["ok"] and took_s >= _SLOW_S:
            remedy = _SLOW_HERE if urlsplit(self._base).hostname in LOOPBACK else _SLOW
            told["warning"] = f"{hop} took {took_s:.1f} seconds; clients that wait less give up. {remedy}"
        self.steps.append(told)
        return bool(told["ok"])

    def _dns(self) -> str:
        try:
            found = socket.getaddrinfo(self._browser.host, self._browser.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise HopFailed(
                f"{self._browser.host} has no address: {error}",
                "check the name in publicBaseUrl, and that the tunnel runs",
            ) from error
        return " ".join(sorted({str(entry[4][0]) for entry in found}))

    def _tcp(self) -> str:
        self._browser.connect()
        return f"port {self._browser.port}"

    def _tls(self) -> str:
        return self._browser.shake_hands()

    def _challenge(self) -> str:
        answer = self._mcp("server/discover", token=None)
        if answer.status == 200:
            if not isinstance(answer.json("server/discover").get("result"), dict):
                raise HopFailed("what answers is no MCP server", "something in between answers in our place")
            self._wants_token = False
            return "no credential is needed here"
        if answer.status != 401:
            raise unexpected(answer, self._path)
        if "resource_metadata=" not in answer.headers.get("www-authenticate", ""):
            raise HopFailed("the 401 names no metadata", "the proxy must pass WWW-Authenticate on")
        return "401, with the place of the metadata"

    def _resource(self) -> str:
        found = self._get(f"/.well-known/oauth-protected-resource{self._path}", "the resource metadata")
        if found.get("resource") != self.url:
            raise HopFailed(f"the metadata speaks of {found.get('resource')}", self._about(found.get("resource")))
        return str(found["resource"])

    def _server(self) -> str:
        found = self._get("/.well-known/oauth-authorization-server", "the server metadata")
        if found.get("issuer") != self._base:
            raise HopFailed(f"the issuer is {found.get('issuer')}", self._about(found.get("issuer")))
        return str(found["issuer"])

    def _register(self) -> str:
        about = {"redirect_uris": [_CALLBACK], "client_name": "computer-linker diagnose"}
        answer = self._browser.send("POST", "/register", about)
        if answer.status != 201:
            raise unexpected(answer, "/register")
        self._client = str(answer.json("the registration")["client_id"])
        return "a client for this run"

    def _authorize(self) -> str:
        self._verifier = secrets.token_urlsafe(32)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(self._verifier.encode()).digest()).decode().rstrip("=")
        state = secrets.token_urlsafe(8)
        asked = {
            "response_type": "code", "client_id": self._client, "redirect_uri": _CALLBACK, "code_challenge": challenge,
            "code_challenge_method": "S256", "state": state, "resource": self.url, "scope": _SCOPE,
        }  # fmt: skip
        page = self._browser.send("GET", f"/authorize?{urlencode(asked)}")
        if page.status != 200 or _hidden(page).keys() != {"request", "csrf"}:
            raise unexpected(page, "/authorize", otherwise="the proxy must pass /authorize and its query on")
        allowed = self._consent(_hidden(page))
        given = {name: values[0] for name, values in parse_qs(urlsplit(allowed).query).items()}
        if given.get("state") != state or given.get("iss") != self._base or "code" not in given:
            raise HopFailed(
                f"the consent ended in {given.get('error', 'an answer that is not ours')}",
                "look at computer-linker history",
            )
        self._code = given["code"]
        return "approved with the owner token"

    def _consent(self, hidden: dict[str, str]) -> str:
        allow = ("answer", "allow")
        choice = self._browser.send("POST", CONSENT, [*hidden.items(), allow, ("owner_token", str(self.owner_token))])
        if choice.status == 403 and "owner token" in choice.text:
            raise HopFailed("the owner token is refused", "it was changed just now; try again")
        if choice.status != 200:
            raise unexpected(choice, CONSENT, "the consent page", "the proxy must pass cookies and form bodies on")
        scopes = [("scope", name) for name in re.findall(r'name="scope" value="([^"]+)"', choice.text)]
        if not scopes:
            raise HopFailed("there is nothing to give access to", "computer-linker start FOLDER")
        # The second page has hidden fields of its own: those of the first hold no longer.
        answer = self._browser.send("POST", CONSENT, [*_hidden(choice).items(), allow, ("group", _SCOPE), *scopes])
        if answer.status != 302:
            raise unexpected(answer, CONSENT, "the consent", "no scope may read: computer-linker scope list")
        return answer.headers["location"]

    def _token(self) -> str:
        self._issued([
            ("grant_type", "authorization_code"), ("code", self._code), ("redirect_uri", _CALLBACK),
            ("client_id", self._client), ("code_verifier", self._verifier), ("resource", self.url),
        ])  # fmt: skip
        return f"for {self._tokens.get('expires_in')} seconds"

    def _refresh(self) -> str:
        self._issued([
            ("grant_type", "refresh_token"), ("refresh_token", str(self._tokens.get("refresh_token"))),
            ("client_id", self._client), ("resource", self.url),
        ])  # fmt: skip
        return "rotated"

    def _issued(self, form: list[tuple[str, str]]) -> None:
        answer = self._browser.send("POST", "/token", form)
        if answer.status in (400, 401):
            # Ours, or one that speaks as we do: it did not get what we sent.
            raise HopFailed(f"/token answers {answer.status}", "the proxy must pass form bodies on as they are")
        if answer.status != 200:
            raise unexpected(answer, "/token")
        issued = answer.json("the token")
        if "access_token" not in issued:
            raise HopFailed("/token gives no token", "something in between answers in our place")
        self._tokens = issued

    def _discover(self) -> str:
        return " ".join(self._result("server/discover")["supportedVersions"])

    def _tools(self) -> str:
        return " ".join(tool["name"] for tool in self._result("tools/list")["tools"])

    def _call(self) -> str:
        result = self._result("tools/call", {"name": "get_computer_info", "arguments": {"include": ["identity"]}})
        if result.get("isError"):
            raise HopFailed("get_computer_info is refused", "look at computer-linker history")
        return "get_computer_info"

    def _revoke(self) -> str:
        form = [("token", str(self._tokens.get("refresh_token"))), ("client_id", self._client)]
        answer = self._browser.send("POST", "/revoke", form)
        if answer.status != 200:
            raise HopFailed(f"/revoke answers {answer.status}", "the access of this run ends by itself")
        return "the access of this run was taken back"

    def _result(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = self._mcp(method, params, token=self._tokens.get("access_token"))
        if answer.status != 200:
            raise unexpected(answer, self._path, method, "the proxy must pass POST bodies and every Mcp- header on")
        result = answer.json(method).get("result")
        if not isinstance(result, dict):
            raise HopFailed(f"{method} has no result", "the proxy must pass POST bodies and every Mcp- header on")
        return result

    def _mcp(self, method: str, params: dict[str, Any] | None = None, *, token: str | None) -> Answer:
        headers = {
            "accept": "application/json, text/event-stream", "mcp-protocol-version": _VERSION, "mcp-method": method,
        }  # fmt: skip
        if params is not None and "name" in params:
            headers["mcp-name"] = str(params["name"])
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**(params or {}), "_meta": _META}}
        return self._browser.send("POST", self._path, message, headers)

    def _get(self, path: str, what: str) -> dict[str, Any]:
        answer = self._browser.send("GET", path)
        if answer.status != 200:
            raise unexpected(answer, path, what)
        return answer.json(what)

    def _about(self, other: object) -> str:
        """What to do about metadata that speaks of another address than the one we came by."""
        host = urlsplit(str(other)).hostname
        if host in LOOPBACK and self._browser.host != host:
            return "the proxy must pass Host on as it came (in nginx: proxy_set_header Host $http_host)"
        return "set publicBaseUrl to the address clients use, exactly"


def _hidden(page: Answer) -> dict[str, str]:
    """What a form of the consent page sends back unseen."""
    return dict(re.findall(r'name="(request|csrf)" value="([^"]+)"', page.text))
