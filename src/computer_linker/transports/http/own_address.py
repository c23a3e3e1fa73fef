"""The addresses by which this machine, and others on the same network, reach a service that listens on every address."""

import socket
from dataclasses import replace
from ipaddress import IPv6Address, ip_address
from urllib.parse import urlsplit

from computer_linker.transports.http.guards import Places, authority

EVERY = ("0.0.0.0", "::")  # noqa: S104  # compared, not bound
_SOMEWHERE = ("192.0.2.1", 9)
"""An address set aside for documentation: it is only asked which way packets would leave, and none is sent."""


def at_own_address(places: Places, arrived_at: tuple[str, int] | None) -> Places:
    """The places with the very address a connection arrived at.

    A page of another site cannot bring a browser to send it: its own name would be the Host, whatever that resolves to.
    """
    if arrived_at is None:
        return places
    name = authority(_plain(arrived_at[0]), arrived_at[1])
    return replace(
        places,
        local_hosts=places.local_hosts | {name.encode()},
        origins=places.origins | {f"http://{name}".encode()},
    )


def is_near(peer: str) -> bool:
    """True for an address that cannot come from the wide internet."""
    try:
        return not ip_address(_plain(peer)).is_global
    except ValueError:
        return False


def base_for_others(bound_url: str) -> str:
    """Where a link for another device begins: at the bound address, or at the one that others on the network see."""
    parts = urlsplit(bound_url)
    host, port = parts.hostname or "", parts.port or 80
    return f"http://{authority(_seen_by_others() if host in EVERY else host, port)}"


def for_this_machine(url: str) -> str:
    """The URL as a program on this machine uses it: every address is no address to connect to."""
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
    """An IPv4 address that came through an IPv6 socket, as it is otherwise written."""
    found = ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return str(mapped or found)
