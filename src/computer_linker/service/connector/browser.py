"""A small user agent for one origin: verifies TLS, keeps cookies, follows nothing by itself."""

import http.client
import json
import socket
import ssl
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlencode, urlsplit

_DEADLINE_S = 15


class HopFailed(Exception):
    """This hop does not work; what was seen, and what would help."""

    def __init__(self, seen: str, remedy: str) -> None:
        super().__init__(seen)
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self, what: str) -> dict[str, Any]:
        """The body as a JSON object."""
        try:
            value = json.loads(self.body)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise HopFailed(
                f"{what} came with status {self.status} and is not JSON", "something in between answers in our place"
            )
        return value


class Browser:
    """Talks to one origin only: whatever leads elsewhere is a finding, not a place to go."""

    def __init__(self, base: str) -> None:
        self._to: SplitResult = urlsplit(base)
        self._cookies: dict[str, str] = {}

    @property
    def host(self) -> str:
        return self._to.hostname or ""

    @property
    def port(self) -> int:
        return self._to.port or (443 if self.is_secure else 80)

    @property
    def is_secure(self) -> bool:
        return self._to.scheme == "https"

    def send(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """One request. A dict goes as JSON, a list of pairs as a form."""
        given = {"user-agent": "computer-linker-diagnose", **(headers or {})}
        raw: str | None = None
        if isinstance(body, dict):
            raw, given["content-type"] = json.dumps(body), "application/json"
        elif body is not None:
            raw, given["content-type"] = urlencode(body), "application/x-www-form-urlencoded"
        if self._cookies:
            given["cookie"] = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        link = self._link()
        try:
            link.request(method, path, raw, given)
            answer = link.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            self._keep(told)
            return Answer(answer.status, told, answer.read(1 << 22))
        except TimeoutError as error:
            raise HopFailed(
                f"{method} {path.split('?')[0]} got no answer within {_DEADLINE_S} seconds",
                "something takes the connection and does not answer: the service behind it hangs, or leads nowhere",
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise HopFailed(
                f"{method} {path.split('?')[0]} failed: {error or type(error).__name__}",
                "the connection breaks off: look at the proxy or tunnel in between",
            ) from error
        finally:
            link.close()

    def connect(self) -> None:
        """Open and close a bare connection."""
        try:
            socket.create_connection((self.host, self.port), timeout=_DEADLINE_S).close()
        except OSError as error:
            raise HopFailed(
                f"nothing answers on {self.host}:{self.port}: {error}",
                "start it: computer-linker start; check the tunnel",
            ) from error

    def shake_hands(self) -> str:
        """Open TLS with the certificate verified; the protocol that was agreed on."""
        try:
            with (
                socket.create_connection((self.host, self.port), timeout=_DEADLINE_S) as plain,
                ssl.create_default_context().wrap_socket(plain, server_hostname=self.host) as secure,
            ):
                return secure.version() or "TLS"
        except ssl.SSLCertVerificationError as error:
            raise HopFailed(
                f"the certificate is not trusted: {error.verify_message}",
                "use a certificate for this very name from a public authority; clients refuse any other",
            ) from error
        except OSError as error:
            raise HopFailed(f"TLS fails: {error}", "look at the proxy or tunnel that ends TLS") from error

    def _link(self) -> http.client.HTTPConnection:
        if self.is_secure:
            return http.client.HTTPSConnection(self.host, self.port, timeout=_DEADLINE_S)
        return http.client.HTTPConnection(self.host, self.port, timeout=_DEADLINE_S)

    def _keep(self, headers: dict[str, str]) -> None:
        if "set-cookie" in headers:
            name, _, value = headers["set-cookie"].split(";")[0].partition("=")
            self._cookies[name] = value
