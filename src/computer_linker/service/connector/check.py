"""The connector check in a client's order: reach, discover, register, authorize, token, refresh, then MCP."""

import base64
import hashlib
import re
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import parse_qs, urlencode, urlsplit

from pydantic import Field

from computer_linker.http_client import Response
from computer_linker.model.base import Model
from computer_linker.service.connector.origin import HopFailed, OriginClient, json_object

_BEHIND = (
    "the proxy or tunnel answers but does not reach the service: see that it runs (computer-linker status), and at the port "
    "the proxy leads to"
)
_MEANINGS = {
    401: "the proxy must pass the Authorization header on",
    403: "an access rule in between refuses (a firewall, or a login page of the tunnel): it must let {path} through",
    404: "the proxy must pass {path} on to the service",
    405: "the proxy must pass {path} on to the service, with every method",
    408: "the request's body arrived too slowly: look at the proxy or tunnel in between",
    413: "the proxy must let larger request bodies through",
    421: "the Host that arrives is not the public address: pass Host on as it came, or set publicBaseUrl to this address",
    429: "too many requests or registered clients; wait a minute, then try again",
    500: "what stands there failed: see the log of the proxy, and computer-linker doctor",
    502: _BEHIND,
    503: _BEHIND,
    504: "the service behind the proxy does not answer in time: see computer-linker status, or start it anew",
}
_FROM_A_CDN = range(520, 540)
"""Statuses of Cloudflare's edge when the tunnel or the origin is down."""


def unexpected(answer: Response, path: str, what: str | None = None, otherwise: str | None = None) -> HopFailed:
    """The failure of a hop that answered with an unexpected status; `otherwise` is for other statuses."""
    seen = f"{what or path} answers {answer.status}"
    if answer.status in range(300, 400):
        return HopFailed(f"{seen}, to {answer.headers.get('location')}", "give clients the address it leads to")
    if answer.status in _FROM_A_CDN:
        return HopFailed(seen, _BEHIND)
    meaning = _MEANINGS.get(answer.status, otherwise or "something in between answers in our place")
    return HopFailed(seen, meaning.format(path=path))


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


_Left = Field(exclude_if=lambda value: value is None)


class Hop(Model):
    """One step of the check: `ok` is null for one that was left out."""

    hop: str
    ok: bool | None
    detail: str = ""
    remedy: Annotated[str | None, _Left] = None
    duration_ms: Annotated[float | None, _Left] = None
    warning: Annotated[str | None, _Left] = None


@dataclass
class ConnectorCheck:
    """One run. `owner_token` is used on the consent page of this address, and nowhere else; None leaves OAuth out."""

    url: str
    owner_token: str | None
    steps: list[Hop] = field(default_factory=list)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        self._base = f"{parts.scheme}://{parts.netloc}"
        self._path = parts.path or "/mcp"
        self._origin = OriginClient(self._base)
        self._client = self._code = self._verifier = ""
        self._tokens: dict[str, Any] = {}
        self._wants_token = True

    def run(self) -> None:
        """Run the steps until one fails; the rest depend on it."""
        reach: list[tuple[str, Callable[[], str]]] = [("dns", self._dns), ("tcp", self._tcp)]
        if self._origin.is_secure:
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
            self.steps.append(Hop(hop="authorize", ok=None, detail="left out: the owner token is not at hand here"))
            return False
        enter = [("authorize", self._authorize), ("token", self._token), ("refresh", self._refresh)]
        return all(self._try(name, step) for name, step in enter)

    def _try(self, hop: str, step: Callable[[], str]) -> bool:
        started = time.perf_counter()
        remedy = warning = None
        try:
            ok, detail = True, step()
        except HopFailed as failed:
            ok, detail, remedy = False, str(failed), failed.remedy
        took_s = time.perf_counter() - started
        if ok and took_s >= _SLOW_S:
            cause = _SLOW_HERE if urlsplit(self._base).hostname in LOOPBACK else _SLOW
            warning = f"{hop} took {took_s:.1f} seconds; clients that wait less give up. {cause}"
        took_ms = round(took_s * 1000, 1)
        self.steps.append(Hop(hop=hop, ok=ok, detail=detail, remedy=remedy, duration_ms=took_ms, warning=warning))
        return ok

    def _dns(self) -> str:
        try:
            found = socket.getaddrinfo(self._origin.host, self._origin.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise HopFailed(
                f"{self._origin.host} has no address: {error}",
                "check the name in publicBaseUrl, and that the tunnel runs",
            ) from error
        return " ".join(sorted({str(entry[4][0]) for entry in found}))

    def _tcp(self) -> str:
        self._origin.connect()
        return f"port {self._origin.port}"

    def _tls(self) -> str:
        return self._origin.handshake()

    def _challenge(self) -> str:
        answer = self._mcp("server/discover", token=None)
        if answer.status == 200:
            if not isinstance(json_object(answer, "server/discover").get("result"), dict):
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
        answer = self._origin.send("POST", "/register", about)
        if answer.status != 201:
            raise unexpected(answer, "/register")
        self._client = str(json_object(answer, "the registration")["client_id"])
        return "a client for this run"

    def _authorize(self) -> str:
        self._verifier = secrets.token_urlsafe(32)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(self._verifier.encode()).digest()).decode().rstrip("=")
        state = secrets.token_urlsafe(8)
        asked = {
            "response_type": "code", "client_id": self._client, "redirect_uri": _CALLBACK, "code_challenge": challenge,
            "code_challenge_method": "S256", "state": state, "resource": self.url, "scope": _SCOPE,
        }  # fmt: skip
        page = self._origin.send("GET", f"/authorize?{urlencode(asked)}")
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
        choice = self._origin.send("POST", CONSENT, [*hidden.items(), allow, ("owner_token", str(self.owner_token))])
        if choice.status == 403 and "owner token" in choice.text:
            raise HopFailed("the owner token is refused", "it was changed just now; try again")
        if choice.status != 200:
            raise unexpected(choice, CONSENT, "the consent page", "the proxy must pass cookies and form bodies on")
        scopes = [("scope", name) for name in re.findall(r'name="scope" value="([^"]+)"', choice.text)]
        if not scopes:
            raise HopFailed("there is nothing to give access to", "computer-linker start FOLDER")
        # The second page has its own hidden fields: those of the first are no longer valid.
        answer = self._origin.send("POST", CONSENT, [*_hidden(choice).items(), allow, ("group", _SCOPE), *scopes])
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
        answer = self._origin.send("POST", "/token", form)
        if answer.status in (400, 401):
            # Our error format: the service did not receive what we sent.
            raise HopFailed(f"/token answers {answer.status}", "the proxy must pass form bodies on as they are")
        if answer.status != 200:
            raise unexpected(answer, "/token")
        issued = json_object(answer, "the token")
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
        answer = self._origin.send("POST", "/revoke", form)
        if answer.status != 200:
            raise HopFailed(f"/revoke answers {answer.status}", "the access of this run ends by itself")
        return "the access of this run was taken back"

    def _result(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = self._mcp(method, params, token=self._tokens.get("access_token"))
        if answer.status != 200:
            raise unexpected(answer, self._path, method, "the proxy must pass POST bodies and every Mcp- header on")
        result = json_object(answer, method).get("result")
        if not isinstance(result, dict):
            raise HopFailed(f"{method} has no result", "the proxy must pass POST bodies and every Mcp- header on")
        return result

    def _mcp(self, method: str, params: dict[str, Any] | None = None, *, token: str | None) -> Response:
        headers = {
            "accept": "application/json, text/event-stream", "mcp-protocol-version": _VERSION, "mcp-method": method,
        }  # fmt: skip
        if params is not None and "name" in params:
            headers["mcp-name"] = str(params["name"])
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**(params or {}), "_meta": _META}}
        return self._origin.send("POST", self._path, message, headers)

    def _get(self, path: str, what: str) -> dict[str, Any]:
        answer = self._origin.send("GET", path)
        if answer.status != 200:
            raise unexpected(answer, path, what)
        return json_object(answer, what)

    def _about(self, other: object) -> str:
        """The remedy for metadata that names another address than the one used."""
        host = urlsplit(str(other)).hostname
        if host in LOOPBACK and self._origin.host != host:
            return "the proxy must pass Host on as it came (in nginx: proxy_set_header Host $http_host)"
        return "set publicBaseUrl to the address clients use, exactly"


def _hidden(page: Response) -> dict[str, str]:
    """The hidden fields of a form on the consent page."""
    return dict(re.findall(r'name="(request|csrf)" value="([^"]+)"', page.text))
