"""Which hosts may be reached, and by which address: a name is resolved once, and exactly what was checked is connected to."""

import asyncio
import ipaddress
import math
import socket
import stat
import time
from collections.abc import Awaitable, Callable, Container
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from computer_linker.model.network import WEB_PORTS, Entry, Ip, address_of, canonical_host
from computer_linker.system import os

_METADATA = frozenset(
    ipaddress.ip_address(text) for text in ("100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254")
)
"""Cloud metadata services outside the link-local range, which return credentials."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


_RESOLVE_S = 20.0
_CACHED_S = 30.0
_MAX_CACHED = 512
NOT_LISTED = "it is not in the network list of the scope"


class Refused(Exception):
    """A refused connection: the host as it was asked for, the port (0 where none was named yet), and the reason.

    `entry` is the entry of the scope's list that would allow it; None where nothing would.
    """

    def __init__(self, host: str, port: int, why: str, entry: str | None = None) -> None:
        self.host, self.port, self.why, self.entry = _printable(host), port, why, entry
        super().__init__(f"{self.host} is not opened: {why}.")


@dataclass(frozen=True, slots=True)
class Rules:
    """What a scope may reach now: everything, or its entries."""

    everything: bool
    entries: tuple[Entry, ...] = ()
    asks: bool = False
    """The owner is asked for other hosts."""

    @property
    def is_empty(self) -> bool:
        return not (self.everything or self.entries or self.asks)

    def names(self, host: str) -> bool:
        return any(entry.names(host) for entry in self.entries)


@dataclass(frozen=True, slots=True)
class Own:
    """This service's own addresses and ports."""

    ports: Callable[[], frozenset[int]]
    hosts: Callable[[], frozenset[str]]


class _Judged(NamedTuple):
    """An answer of `judge`, by what, and until when."""

    by: tuple[object, ...]
    until: float
    answer: tuple[str, list[str]]


Ask = Callable[[str, int], Awaitable[bool]]
"""Whether the owner lets a host and port be reached that are not listed."""


async def _no_ask(_host: str, _port: int) -> bool:
    return False


class Reach:
    """Decides about connections by the rules of the moment, so that a revocation applies at once."""

    def __init__(self, rules: Callable[[], Rules], own: Own, ask: Ask = _no_ask) -> None:
        self.rules = rules
        self._own = own
        self._ask = ask
        self.asking: list[str] = []
        """Hosts that the owner is asked about now."""
        self._resolved: dict[str, tuple[float, list[str]]] = {}
        self._judged: dict[tuple[str, int], _Judged] = {}

    async def judge(self, asked: str, port: int) -> tuple[str, list[str]]:
        """The canonical host, and the addresses to try. Raises Refused; one forbidden address of a name closes it."""
        # Requests of one connection follow each other; the same question has the same answer while nothing has changed.
        known = self._known(asked, port)
        if known is not None:
            return known
        by = self._by()
        host, entry = await self._allowed(asked, port)
        chosen = _chosen(host, entry)
        addresses = chosen or await self._addresses(host, port)
        for address in addresses:
            ip = _parsed(address)
            if why := why_closed(ip, port, self._own):
                raise Refused(host, port, why)
            if not (chosen or self.rules().everything or _plain(ip).is_global):
                raise Refused(host, port, "it has a private address", f"{entry_for(host, port)}={ip}")
        if len(self._judged) >= _MAX_CACHED:
            self._judged.clear()
        # A name that is resolved may have another address later.
        until = math.inf if chosen else self._resolved[host][0] + _CACHED_S
        self._judged[asked, port] = _Judged(by, until, (host, addresses))
        return host, addresses

    def is_still_allowed(self, asked: str, port: int) -> bool:
        """Whether the last answer of `judge` was a yes and still holds. Any thread may ask."""
        return self._known(asked, port) is not None

    def _known(self, asked: str, port: int) -> tuple[str, list[str]] | None:
        known = self._judged.get((asked, port))
        return known.answer if known is not None and time.monotonic() < known.until and known.by == self._by() else None

    def _by(self) -> tuple[object, ...]:
        """All that a decision depends on."""
        return self.rules(), self._own.ports(), self._own.hosts()

    async def _allowed(self, asked: str, port: int) -> tuple[str, Entry | None]:
        """What is listed, or what the owner allows now. Nothing is resolved before: a name can carry a text out."""
        try:
            return self.listed(asked, port)
        except Refused as refused:
            if refused.entry is None or not self.rules().asks:
                raise
            if not await self._answered(f"{refused.host}:{port}", self._ask(refused.host, port)):
                raise Refused(refused.host, port, "the owner was asked, and did not allow it", refused.entry) from None
        return self.listed(asked, port)

    async def _answered(self, host: str, answer: Awaitable[bool]) -> bool:
        self.asking.append(host)
        try:
            return await answer
        finally:
            self.asking.remove(host)

    def listed(self, asked: str, port: int) -> tuple[str, Entry | None]:
        """The canonical host and its entry of the list; None where everything is allowed. Raises Refused."""
        try:
            host = canonical_host(asked)
        except ValueError:
            raise Refused(asked, port, "it is not a plain host name") from None
        rules = self.rules()
        if rules.is_empty:
            raise Refused(host, port, "this scope has no network")
        if host in self._own.hosts():
            raise Refused(host, port, "it is this service itself")
        covering = (entry for entry in rules.entries if entry.covers(host, port))
        # The owner's address for a name goes before every other entry that means the name.
        entry = max(covering, key=lambda entry: entry.pinned is not None, default=None)
        if entry is None and not rules.everything:
            for address in _chosen(host, None):
                if why := why_closed(ipaddress.ip_address(address), port, self._own):
                    raise Refused(host, port, why)
            why = f"the network list of the scope has it without port {port}" if rules.names(host) else NOT_LISTED
            raise Refused(host, port, why, entry_for(host, port))
        return host, entry

    async def _addresses(self, host: str, port: int) -> list[str]:
        known = self._resolved.get(host)
        if known is not None and time.monotonic() - known[0] < _CACHED_S:
            return known[1]
        async with asyncio.timeout(_RESOLVE_S):
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        if len(self._resolved) >= _MAX_CACHED:
            self._resolved.clear()
        self._resolved[host] = (time.monotonic(), addresses)
        return addresses


@lru_cache(maxsize=1024)
def _parsed(address: str) -> Ip:
    return ipaddress.ip_address(address.partition("%")[0])


def entry_for(host: str, port: int) -> str:
    """The entry of a list that allows a host and port (0: the usual ones) and no more."""
    plain = f"[{host}]" if ":" in host else host
    return plain if port in (0, *WEB_PORTS) else f"{plain}:{port}"


def _chosen(host: str, entry: Entry | None) -> list[str]:
    """The addresses that need no resolver: the owner's choice, an address itself, this machine."""
    if entry is not None and entry.pinned is not None:
        return [entry.pinned]
    if address_of(host) is not None:
        return [host]
    return ["127.0.0.1", "::1"] if host == "localhost" else []


def _printable(host: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in host[:100])


def why_closed(ip: Ip, port: int, own: Own) -> str:
    """The reason no program may reach this address; empty where it may."""
    if why := _why_never(ip):
        return why
    if port in own.ports() and is_local(_plain(ip)):
        return "it is this service itself"
    return ""


@lru_cache(maxsize=1024)
def _why_never(ip: Ip) -> str:
    ip = _plain(ip)
    if ip.is_link_local or ip in _METADATA:
        return "it is where machines keep their credentials"
    if ip.is_multicast or ip.is_unspecified or (ip.is_reserved and not ip.is_loopback):
        return "it is no address of one machine"
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


def own_ports(elsewhere: Container[int] = ()) -> frozenset[int]:
    """All ports this process listens on; but for descriptors that listen in another network."""
    ports: set[int] = set()
    proc = Path("/proc/self/fd")
    for entry in list((proc if proc.is_dir() else Path("/dev/fd")).iterdir()):
        try:
            if int(entry.name) in elsewhere or not stat.S_ISSOCK(os.fstat(int(entry.name)).st_mode):
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


def _plain(ip: Ip) -> Ip:
    """The IPv4 address embedded in an IPv6 one."""
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        return inner or ip
    return ip
