"""HTTP client for the checks on one origin: verifies TLS, keeps cookies, follows no redirect."""

import json
import socket
import ssl
from typing import Any
from urllib.parse import SplitResult, urlsplit

from computer_linker.http_client import RequestFailed, Response, fetch_now

_DEADLINE_S = 15
_MAX_BYTES = 1 << 22


class HopFailed(Exception):
    """This hop does not work; carries the finding and the remedy."""

    def __init__(self, seen: str, remedy: str) -> None:
        super().__init__(seen)
        self.remedy = remedy


def json_object(answer: Response, what: str) -> dict[str, Any]:
    """Return the body as a JSON object."""
    try:
        value = json.loads(answer.body)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise HopFailed(
            f"{what} came with status {answer.status} and is not JSON", "something in between answers in our place"
        )
    return value


class OriginClient:
    """Sends requests to one origin; a redirect is a finding and is not followed."""

    def __init__(self, base: str) -> None:
        self._base = base
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

    def send(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Response:
        """Send one request. A dict goes as JSON, a list of pairs as a form."""
        given = {"user-agent": "computer-linker-diagnose", **(headers or {})}
        if self._cookies:
            given["cookie"] = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        content = {"json": body} if isinstance(body, dict) else {"form": body}
        asked = f"{method} {path.split('?')[0]}"
        try:
            answer = fetch_now(
                f"{self._base}{path}",
                method=method,
                seconds=_DEADLINE_S,
                max_bytes=_MAX_BYTES,
                headers=given,
                **content,
            )
        except RequestFailed as error:
            if error.kind == "timeout":
                raise HopFailed(
                    f"{asked} got no answer within {_DEADLINE_S} seconds",
                    "something takes the connection and does not answer: the service behind it hangs, or leads nowhere",
                ) from error
            raise HopFailed(
                f"{asked} failed: {error}", "the connection breaks off: look at the proxy or tunnel in between"
            ) from error
        if "set-cookie" in answer.headers:
            name, _, value = answer.headers["set-cookie"].split(";")[0].partition("=")
            self._cookies[name] = value
        return answer

    def connect(self) -> None:
        """Open and close a bare connection."""
        try:
            socket.create_connection((self.host, self.port), timeout=_DEADLINE_S).close()
        except OSError as error:
            raise HopFailed(
                f"nothing answers on {self.host}:{self.port}: {error}",
                "start it: computer-linker start; check the tunnel",
            ) from error

    def handshake(self) -> str:
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
