"""The query grammar: small, strict, and never wider than it reads."""

import pytest

from computer_linker.errors import InvalidRequest
from computer_linker.fleet.machines import DEFAULT_WITHIN_S, parse
from computer_linker.fleet.settings import Facts

LINUX = Facts(os="linux", arch="x86_64", has=["docker", "git"])


@pytest.mark.parametrize(
    ("address", "fits"),
    [
        ("[all]", True),
        ("[os=linux]", True),
        ("[os=Linux arch=X86_64]", True),
        ("[os=linux has=docker has=git]", True),
        ("[has=docker has=podman]", False),
        ("[os=darwin]", False),
        ("[name=laptop]", True),
        ("[name=lap]", False),
        ("[can=fs:read]", True),
        ("[can=fs:write]", False),
        ("[all within=5]", True),
    ],
)
def test_all_conditions_must_hold(address: str, fits: bool) -> None:
    assert parse(address).matches("laptop", LINUX, frozenset({"fs:read"})) is fits


@pytest.mark.parametrize(
    "address",
    ["[]", "[ ]", "[within=5]", "[all os=linux]", "[os=linux os=darwin]", "[os==linux]", "[os=]", "[os!=linux]", "[user=root]", "[os=linux", "os=linux]",
     "[os=lin*ux]", "[has=a/b]", "[os=linux]]", "[within=0 all]", "[within=-1 all]", "[within=9999 all]", "[within=nan all]", "[within=1e3 all]", "[within=5 within=6 all]",
     "[os=linux;rm]", "[os=linux has=" + "x" * 65 + "]", "[" + "has=a " * 100 + "]", "[os=linux\x00]", "[ALL]", "[os=linux,has=git]"],
)  # fmt: skip
def test_anything_else_is_refused(address: str) -> None:
    with pytest.raises(InvalidRequest):
        parse(address)


def test_one_deadline_for_all() -> None:
    assert parse("[all]").within_s == DEFAULT_WITHIN_S
    assert parse("[os=linux within=2.5s]").within_s == 2.5


def test_a_machine_without_facts_fits_only_all() -> None:
    assert parse("[all]").matches("x", Facts(), frozenset())
    assert not parse("[os=linux]").matches("x", Facts(), frozenset())
    assert not parse("[has=git]").matches("x", Facts(), frozenset())
