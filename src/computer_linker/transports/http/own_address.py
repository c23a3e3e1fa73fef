"""Addresses by which this machine, and others on the same network, reach a service that is bound to every address."""

import socket
from dataclasses import replace
from ipaddress import IPv6Address, ip_address
from urllib.parse import urlsplit

from computer_linker.transports.http.guards import Authorities, authority

EVERY = ("0.0.0.0", "::")  # noqa: S104  # compared, not bound
_SOMEWHERE = ("192.0.2.1", 9)
"""An address reserved for documentation: it only selects the outgoing interface, no packet is sent."""


def at_own_address(authorities: Authorities, arrived_at: tuple[str, int] | None) -> Authorities:
    """The accepted names with the address a connection arrived at.

    A page of another site cannot make a browser send it: its own name would be the Host, whatever that resolves to.
    """
    if arrived_at is None:
        return authorities
    name = authority(_plain(arrived_at[0]), arrived_at[1])
    return replace(
        authorities,
        local_hosts=authorities.local_hosts | {name.encode()},
        origins=authorities.origins | {f"http://{name}".encode()},
    )


def is_near(peer: str) -> bool:
    """True for an address that is not on the public internet."""
    try:
        return not ip_address(_plain(peer)).is_global
    except ValueError:
        return False


def base_for_others(bound_url: str) -> str:
    """The base URL of a link for another device: the bound address, or the one that others on the network see."""
    parts = urlsplit(bound_url)
    host, port = parts.hostname or "", parts.port or 80
    return f"http://{authority(_seen_by_others() if host in EVERY else host, port)}"


def for_this_machine(url: str) -> str:
    """The URL for a program on this machine: the wildcard address is not one to connect to."""
    parts = urlsplit(url)
    near = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(parts.hostname or "")  # noqa: S104  # compared, not bound
    return url if near is None else parts._replace(netloc=authority(near, parts.port or 80)).geturl()


def is_loopback(url: str) -> bool:
    """True for an address that only this machine reaches."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _seen_by_others() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_SOMEWHERE)
        except OSError:
            return "127.0.0.1"
        found: str = probe.getsockname()[0]
        return found


def _plain(address: str) -> str:
    """An IPv4-mapped IPv6 address in its IPv4 form."""
    found = ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return str(mapped or found)
