"""Which addresses a browser may be sent to: by the scope's policy, and never this service's own or a machine's metadata."""

import ipaddress
import os
import re
import socket
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from computer_linker.errors import InvalidRequest, PermissionDenied
from computer_linker.model.paths import RootedPath
from computer_linker.model.scope import Scope

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address
BLANK = "about:blank"
_MAX_URL = 4096
_SCHEME = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*):")
_HOST_AND_PORT = re.compile(r"[\w.-]+:\d{1,5}(?:[/?#]|\Z)")
_METADATA = frozenset(
    ipaddress.ip_address(text) for text in ("100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254")
)
"""Addresses at which cloud machines tell their credentials, beside the link-local ones."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class Own:
    """What is this service's own on the network."""

    ports: Callable[[], frozenset[int]]
    hosts: Callable[[], frozenset[str]]


def place_of(scope: Scope, target: str, path: Callable[[str], RootedPath]) -> str | RootedPath:
    """What a request's target means: an address of the web, or a file of the scope.

    Raises:
        PermissionDenied: the scope's policy or the scheme forbids it.
    """
    if len(target) > _MAX_URL or not target.isprintable():
        raise InvalidRequest(f"An address has at most {_MAX_URL} printable characters.", field="target")
    if _HOST_AND_PORT.match(target):
        raise InvalidRequest("Write the address in full, such as http://localhost:3000/.", field="target")
    scheme = _SCHEME.match(target)
    if scheme is None:
        return path(target)
    match scheme[1].lower():
        case "http" | "https":
            return _web(scope, target.strip())
        case "about" if target.strip().lower() == BLANK:
            return BLANK
        case "file":
            raise PermissionDenied(
                "Files are opened by their path inside the scope, such as dist/index.html.", rule="scheme"
            )
    raise PermissionDenied(f"A browser here opens http and https addresses only, not {scheme[1]}:.", rule="scheme")


def file_url(root: str, parts: tuple[str, ...]) -> str:
    """The address of a file of the scope as the browser sees it."""
    return "file://" + quote("/".join((os.path.realpath(root).rstrip("/"), *parts)), safe="/")


def shown(text: str, scope: Scope) -> str:
    """A text with the scope's files named as a client names them, not as they lie on this computer."""
    for number, root in enumerate(scope.roots):
        text = text.replace(file_url(root, ()) + "/", f"@{number}/" if len(scope.roots) > 1 else "")
    return text


def is_inside(url: str, scope: Scope) -> bool:
    """True where what the browser shows is something this scope may show: the web, nothing, or its own files."""
    low = url.lower()
    if low.startswith("file:"):
        roots = (file_url(root, ()) for root in scope.roots)
        return ".." not in url and any(url == root or url.startswith(root + "/") for root in roots)
    return low.startswith(("http://", "https://", "about:", "chrome-error:")) or not low


def why_closed(ip: Ip, port: int, own: Own) -> str:
    """Why no browser may reach this address; empty where it may."""
    ip = _plain(ip)
    if ip.is_link_local or ip in _METADATA:
        return "it is where machines tell their credentials"
    if ip.is_multicast or ip.is_unspecified or (ip.is_reserved and not ip.is_loopback):
        return "it is no address of one machine"
    if is_local(ip) and port in own.ports():
        return "it is this service itself"
    return ""


def is_local(ip: Ip) -> bool:
    """True when the address is this machine's: only those can be bound to."""
    if ip.is_loopback:
        return True
    family = socket.AF_INET if ip.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(ip), 0))
        except OSError:
            return False
    return True


def own_ports() -> frozenset[int]:
    """The ports this process listens on, whoever opened them."""
    ports: set[int] = set()
    proc = Path("/proc/self/fd")
    for entry in list((proc if proc.is_dir() else Path("/dev/fd")).iterdir()):
        try:
            if not stat.S_ISSOCK(os.fstat(int(entry.name)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(entry.name))) as one:
                if _listens(one):
                    ports.add(one.getsockname()[1])
        except (OSError, ValueError):
            continue
    return frozenset(ports)


def _listens(one: socket.socket) -> bool:
    is_ip = one.family in (socket.AF_INET, socket.AF_INET6)
    return is_ip and bool(one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _web(scope: Scope, url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidRequest("The address cannot be read.", field="target") from None
    if not parts.hostname or "\\" in url or " " in url:
        raise InvalidRequest("The address has no host.", field="target")
    if parts.username is not None or parts.password is not None:
        raise InvalidRequest("An address with a name or password in it is not opened.", field="target")
    if not scope.policy.network:
        raise PermissionDenied(
            f"Scope {scope.id} has no network. A file of the scope opens by its path; the owner can set `network` in its policy.",
            rule="network",
        )
    assert port is None or port >= 0
    return url


def _plain(ip: Ip) -> Ip:
    """The IPv4 address inside an IPv6 one that only stands for it."""
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        return inner or ip
    return ip
