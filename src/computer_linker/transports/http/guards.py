"""Checks that every HTTP request passes first: exact Host, exact Origin, bounded and plain bodies."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from computer_linker.config.schema import Config

Headers = dict[bytes, bytes]

MAX_BODY = 16 * 1024 * 1024
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_FORWARDING = (
    b"via", b"cf-", b"cdn-", b"true-client-ip", b"x-client-ip", b"x-cluster-",
    b"x-original-", b"x-envoy-", b"fastly-", b"fly-", b"tailscale-", b"ngrok-", b"x-appengine-",
    b"client-ip", b"x-originating-", b"x-remote-", b"x-azure-", b"x-ms-", b"x-arr-", b"x-vercel-", b"cloudfront-", b"x-amz-cf-",
    b"x-amzn-", b"x-cloud-trace-context", b"x-nf-", b"akamai-", b"x-akamai-", b"x-scheme", b"front-end-https", b"x-real-",
    b"x-host", b"x-rewrite-",
)  # fmt: skip
"""Prefixes of the headers that proxies and tunnels add."""
_BETWEEN = (b"forward", b"proxy", b"tunnel")
"""Parts of the names of such headers, however they are spelt."""
_UTF8 = (b"charset=utf-8", b'charset="utf-8"', b"charset=utf8")
_SINGLE = frozenset(
    (
        b"host", b"origin", b"authorization", b"content-length", b"content-type", b"content-encoding", b"transfer-encoding",
        b"x-computer-linker-token", b"x-localport-token",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Refused(Exception):
    """The request is refused before routing."""

    status: int
    message: str
    rule: str | None = None
    """The rule for the history; None when the refusal is not recorded."""


@dataclass(frozen=True, slots=True)
class NeedsGrant(Exception):
    """The OAuth client must ask the owner for more: the scope has this capability, the client's grant has not."""

    capability: str
    call: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Authorities:
    """The authorities and origins under which this service may be addressed, compared exactly."""

    local_hosts: frozenset[bytes]
    public_hosts: frozenset[bytes]
    origins: frozenset[bytes]


def authorities_of(config: Config, host: str, port: int) -> Authorities:
    """Loopback names with our port (when bound there), the bound address, and the public base URL."""
    names = {host, *LOOPBACK} if host in (*LOOPBACK, "0.0.0.0", "::") else {host}  # noqa: S104  # compared, not bound
    local = {authority(name, port) for name in names if name not in ("0.0.0.0", "::")}  # noqa: S104
    origins = {f"http://{name}" for name in local}
    public: set[str] = set()
    if config.public_base_url:
        parts = urlsplit(config.public_base_url)
        public.add(parts.netloc.lower())
        origins.add(f"{parts.scheme}://{parts.netloc}".lower())
    return Authorities(_encoded(local), _encoded(public), _encoded(origins))


def tunnel_authorities(config: Config, port: int, *, has_own_name: bool) -> Authorities:
    """Names at the tunnel's port, where everything is public: the public names, or its own when the tunnel has no address."""
    if has_own_name:
        return Authorities(frozenset(), _encoded({authority("127.0.0.1", port)}), frozenset())
    named = authorities_of(config, "127.0.0.1", port)
    public_origins = {origin for origin in named.origins if origin.split(b"//")[1] in named.public_hosts}
    return Authorities(frozenset(), named.public_hosts, frozenset(public_origins))


def collect_headers(scope: dict[str, Any]) -> Headers:
    """Headers by name, outer whitespace stripped. Raises Refused for a doubled header that must be single."""
    headers: Headers = {}
    cleaned: list[tuple[bytes, bytes]] = []
    for name, raw in scope["headers"]:
        value = raw.strip(b" \t")
        cleaned.append((name, value))
        if name in headers and (name in _SINGLE or name.startswith(b"mcp-")):
            raise Refused(400, f"The {name.decode('latin-1')} header is given twice.")
        headers[name] = value
    scope["headers"] = cleaned
    return headers


def check_host(headers: Headers, authorities: Authorities) -> bool:
    """True for a request addressed to a public name. Raises Refused for a foreign Host or Origin."""
    host = headers.get(b"host")
    if not host:
        raise Refused(400, "A request needs a Host header.")
    is_public = host in authorities.public_hosts
    if not is_public and host not in authorities.local_hosts:
        raise Refused(421, "This service does not answer to that host name.", "foreign_host")
    origin = headers.get(b"origin")
    if origin is not None and origin not in authorities.origins:
        raise Refused(403, "Requests from that origin are refused.", "foreign_origin")
    return is_public


def check_no_page_sent_it(headers: Headers) -> None:
    """Refuse requests that a browser marks as sent by another site: it omits Origin in some, Sec-Fetch-Site never."""
    if headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
        raise Refused(403, "Requests from the pages of other sites are refused.", "foreign_page")


def base_of(config: Config, headers: Headers, *, is_public: bool) -> str:
    """The origin this request was sent to, which is the OAuth issuer. The Host was checked exactly before."""
    if is_public and config.public_base_url:
        parts = urlsplit(config.public_base_url)
        if headers[b"host"].decode("latin-1") == parts.netloc.lower():
            return f"{parts.scheme}://{parts.netloc}".lower()
    return f"http://{headers[b'host'].decode('latin-1')}"


def came_through_a_proxy(headers: Headers, version: str) -> bool:
    """True when something forwarded this request: it is then never taken for a local one.

    HTTP/1.0 counts: a reverse proxy that adds no header speaks it (nginx by default), and no MCP client does.
    """
    if version == "1.0":
        return True
    names = [name.replace(b"_", b"-") for name in headers]
    return any(name.startswith(_FORWARDING) or any(part in name for part in _BETWEEN) for name in names)


def check_body_headers(headers: Headers) -> None:
    """Refuse compressed bodies, bodies that are not JSON, and bodies declared as too large."""
    if headers.get(b"content-encoding", b"identity") != b"identity":
        raise Refused(415, "Compressed request bodies are not accepted.")
    kind, *parameters = (part.strip().lower() for part in headers.get(b"content-type", b"").split(b";"))
    if kind != b"application/json":
        raise Refused(415, "The request body must be application/json.")
    if any(part.startswith(b"charset") and part not in _UTF8 for part in parameters):
        raise Refused(415, "The request body must be in UTF-8.")
    length = headers.get(b"content-length")
    if length is not None and (not length.isdigit() or int(length[:20]) > MAX_BODY):
        raise Refused(413, f"A request body is at most {MAX_BODY} bytes.")


def authority(name: str, port: int) -> str:
    """A name and a port in the form of a Host header."""
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


def _encoded(values: set[str]) -> frozenset[bytes]:
    return frozenset(value.encode() for value in values)
