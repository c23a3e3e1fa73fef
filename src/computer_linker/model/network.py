"""Entries of a policy's `network` list: `packages.example.org`, `*.example.net:443`, `db.internal:5432=10.0.0.5`, or a word."""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address
PRESETS = ("apt", "cargo", "go", "npm", "pip")
"""Package managers whose hosts are read from the machine's own settings."""
ASK = "ask"
"""Puts every host that is not in the list to the owner."""
WORDS = (*PRESETS, ASK)
"""Entries that are not hosts."""
WEB_PORTS = (80, 443)
"""The ports of an entry that names none."""
MAX_PORTS = 48
PROXY_PORT = 24_128
"""Where the proxy listens in the network of a command; an uncommon one, because no entry can have it."""
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_HOST_AND_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:]+)(?::([0-9]{1,5}))?")


@lru_cache(maxsize=1024)
def canonical_host(text: str) -> str:
    """A host name or address in its one spelling: lower case, no final dot, an address without brackets.

    Raises:
        ValueError: not a plain ASCII host name, nor an address in its usual notation.
    """
    if text.startswith("[") and text.endswith("]"):
        return str(ipaddress.IPv6Address(text[1:-1]))
    if ":" in text:
        return str(ipaddress.IPv6Address(text))
    host = text.removesuffix(".").lower()
    labels = host.split(".")
    if len(host) > 253 or not host.isascii() or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError(f"{text[:80]!r} is not a host name (names in other scripts are written as xn--…)")
    if _NUMBER.fullmatch(labels[-1]):
        # `127.1` and `0x7f000001` are addresses to some programs and names to others.
        return str(ipaddress.IPv4Address(host))
    return host


@lru_cache(maxsize=1024)
def address_of(host: str) -> Ip | None:
    """The address that a canonical host is; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def split_host(text: str, port: int) -> tuple[str, int]:
    """The canonical host and the port of `host`, `host:port`, `[v6]` or `[v6]:port`."""
    found = _HOST_AND_PORT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:80]!r} is not a host and a port")
    if found[2] and not 0 < int(found[2]) < 65_536:
        raise ValueError(f"{found[2]} is not a port")
    return canonical_host(found[1]), int(found[2]) if found[2] else port


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: a host, or with `below` all names below it; its ports, and the address the owner chose for it."""

    host: str
    ports: tuple[int, ...] = WEB_PORTS
    below: bool = False
    pinned: str | None = None

    def covers(self, host: str, port: int) -> bool:
        """Whether a canonical host on a port is meant."""
        return port in self.ports and self.names(host)

    def names(self, host: str) -> bool:
        """Whether a canonical host is meant, on some port."""
        return host.endswith(f".{self.host}") if self.below else host == self.host


@lru_cache(maxsize=1024)
def parse_entry(text: str) -> Entry:
    """An entry that is not a word. Raises ValueError, with what is wrong, for anything else."""
    place, has_pin, pin = text.partition("=")
    below = place.startswith("*.")
    place = place.removeprefix("*.")
    if "*" in place:
        raise ValueError(f"{text[:80]!r}: a * stands only at the start, as in *.example.net; `true` allows every host")
    if place.count(":") > 1 and not place.startswith("["):
        raise ValueError(f"{text[:80]!r}: write an IPv6 address in brackets, as in [2001:db8::1]:443")
    host, port = split_host(place, 0)
    ports = (port,) if port else WEB_PORTS
    if below and ("." not in host or address_of(host) is not None):
        raise ValueError(f"{text[:80]!r}: a * stands before a name of at least two parts, as in *.example.net")
    if has_pin and (below or address_of(host) is not None):
        raise ValueError(f"{text[:80]!r}: only a single name can be given an address")
    return Entry(host, ports, below, canonical_address(pin) if has_pin else None)


def canonical_address(text: str) -> str:
    """An address in its one spelling. Raises ValueError for a name."""
    return str(ipaddress.ip_address(text.removeprefix("[").removesuffix("]")))


def check_entries(entries: Iterable[str]) -> None:
    """Raise ValueError for the first entry that means nothing, or for too many ports."""
    ports = {port for text in entries if text not in WORDS for port in parse_entry(text).ports}
    if PROXY_PORT in ports:
        raise ValueError(f"port {PROXY_PORT} is taken: the proxy of commands listens there")
    if len(ports) > MAX_PORTS:
        raise ValueError(f"a list has at most {MAX_PORTS} different ports")


def shown_network(network: bool | list[str]) -> str:
    """The network of a policy for people: `yes`, `no`, or the hosts."""
    if isinstance(network, bool) or not network:
        return "yes" if network else "no"
    hosts = [entry for entry in network if entry != ASK]
    further = ["you are asked for others"] if ASK in network else []
    return "; ".join([*(["only " + ", ".join(hosts)] if hosts else []), *further])
