"""Which addresses are closed to every browser, and that looking for our own ports leaks nothing."""

import ipaddress
import os
import socket

import pytest

from computer_linker.model.scope import Scope
from computer_linker.providers.browser.addresses import file_url, is_inside, shown
from computer_linker.providers.network.reach import Own, is_local, own_ports, why_closed

OWN = Own(lambda: frozenset({3939}), frozenset)


@pytest.mark.parametrize(
    ("address", "port", "is_closed"),
    [
        ("127.0.0.1", 3000, False),
        ("127.0.0.1", 3939, True),
        ("127.8.9.1", 3939, True),
        ("::1", 3939, True),
        ("::ffff:127.0.0.1", 3939, True),
        ("64:ff9b::7f00:1", 3939, True),
        ("93.184.216.34", 3939, False),
        ("10.0.0.5", 80, False),
        ("169.254.169.254", 80, True),
        ("::ffff:169.254.169.254", 80, True),
        ("64:ff9b::a9fe:a9fe", 80, True),
        ("2002:a9fe:a9fe::1", 80, True),
        ("fe80::1", 80, True),
        ("fd00:ec2::254", 80, True),
        ("100.100.100.200", 80, True),
        ("168.63.129.16", 80, True),
        ("0.0.0.0", 80, True),
        ("::", 80, True),
        ("224.0.0.1", 80, True),
        ("255.255.255.255", 80, True),
        ("2606:2800:220:1::1", 443, False),
    ],
)
def test_closed_addresses(address: str, port: int, is_closed: bool) -> None:
    assert bool(why_closed(ipaddress.ip_address(address), port, OWN)) is is_closed


def test_our_ports_are_those_we_listen_on_and_looking_costs_no_descriptor() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as idle:
        before = len(os.listdir("/dev/fd"))
        idle.bind(("127.0.0.1", 0))
        found = [own_ports() for _ in range(50)]
        assert listener.getsockname()[1] in found[-1]
        assert idle.getsockname()[1] not in found[-1]
        assert len(os.listdir("/dev/fd")) == before


def test_local_addresses_are_those_that_can_be_bound() -> None:
    assert is_local(ipaddress.ip_address("127.0.0.1"))
    assert not is_local(ipaddress.ip_address("192.0.2.1"))


def test_only_the_scopes_own_files_are_inside() -> None:
    scope = Scope.from_wire({"id": "app", "roots": ["/srv/my app"]})
    root = file_url("/srv/my app", ())
    assert root == "file:///srv/my%20app"
    for url in (root + "/a.html", "http://x/", "https://x/", "about:blank", "chrome-error://chromewebdata/", ""):
        assert is_inside(url, scope), url
    for url in (
        "file:///etc/passwd",
        root + "_evil/a",
        root + "/../b",
        "FILE:///srv/x",
        "chrome://x",
        "data:x",
        "view-source:http://x",
    ):
        assert not is_inside(url, scope), url
    assert shown(f"at {root}/a.html:3", scope) == "at a.html:3"
