"""Entries of a network list: what they mean, and that what means nothing is refused."""

import pytest

from computer_linker.model.network import Entry, canonical_host, parse_entry, shown_network
from computer_linker.model.scope import ScopePolicy


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("Packages.Example.org.", Entry("packages.example.org")),
        ("*.example.net:443", Entry("example.net", (443,), below=True)),
        ("localhost:3000", Entry("localhost", (3000,))),
        ("203.0.113.7:5432", Entry("203.0.113.7", (5432,))),
        ("[2001:DB8::1]", Entry("2001:db8::1")),
        ("[2001:db8::1]:8443", Entry("2001:db8::1", (8443,))),
        ("db.internal:5432=10.0.0.5", Entry("db.internal", (5432,), pinned="10.0.0.5")),
        ("db.internal=[fd00::5]", Entry("db.internal", pinned="fd00::5")),
    ],
)
def test_an_entry_is_a_host_its_ports_and_perhaps_an_address(text: str, entry: Entry) -> None:
    assert parse_entry(text) == entry


@pytest.mark.parametrize(
    "text",
    [
        "", "*", "*.com", "*.*.example.org", "a.*.org", "http://x.org", "x.org/y", "u@x.org", "a b", "a\0b", "a\nb",
        "exämple.org", "ﬁ.org", "127.1", "0x7f000001", "2130706433", "1.2.3.4.5", "2001:db8::1", "x.org:0", "x.org:65536",
        "x.org:http", "x..org", ".org", "-a.org", "x.org=name", "*.x.org=10.0.0.1", "10.0.0.1=10.0.0.2", "[::1", "a" * 64,
    ],
)  # fmt: skip
def test_what_is_no_entry_does_not_load(text: str) -> None:
    with pytest.raises(ValueError):
        ScopePolicy(network=[text])


def test_a_star_is_for_names_below_and_not_for_the_name_itself() -> None:
    entry = parse_entry("*.example.net")
    assert entry.covers("a.example.net", 443) and entry.covers("a.b.example.net", 80)
    assert not any(entry.names(host) for host in ("example.net", "badexample.net", "example.net.evil.org"))
    assert not entry.covers("a.example.net", 22)


def test_a_list_has_a_bounded_number_of_ports() -> None:
    with pytest.raises(ValueError, match="different ports"):
        ScopePolicy(network=[f"x.org:{port}" for port in range(1000, 1100)])


def test_hosts_have_one_spelling() -> None:
    assert canonical_host("[::FFFF:7f00:1]") == canonical_host("::ffff:127.0.0.1")
    assert canonical_host("EXAMPLE.org.") == "example.org"
    assert [shown_network(each) for each in (True, False, [], ["pip", "x.org"])] == [
        "yes",
        "no",
        "no",
        "only pip, x.org",
    ]
