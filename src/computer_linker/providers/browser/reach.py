"""Addresses and ports that no browser may reach: this service itself, and cloud metadata services."""

import ipaddress
import os
import socket
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address
_METADATA = frozenset(
    ipaddress.ip_address(text) for text in ("100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254")
)
"""Cloud metadata services outside the link-local range, which return credentials."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class Own:
    """This service's own addresses and ports."""

    ports: Callable[[], frozenset[int]]
    hosts: Callable[[], frozenset[str]]


def why_closed(ip: Ip, port: int, own: Own) -> str:
    """The reason no browser may reach this address; empty where it may."""
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
    """All ports this process listens on."""
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


def _plain(ip: Ip) -> Ip:
    """The IPv4 address embedded in an IPv6 one."""
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        return inner or ip
    return ip
