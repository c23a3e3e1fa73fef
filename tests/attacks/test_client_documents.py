"""A client that names itself by a URL chooses where this service looks: never inside, however the address is written."""

import pytest

from computer_linker.auth.oauth.clients import is_public


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "240.0.0.1", "::1", "::", "fe80::1%eth0",
        "fc00::1", "fec0::1", "ff02::1", "ff0e::1", "::ffff:169.254.169.254", "::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::7f00:1",
        "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:0:7f00:1::",
    ],
)  # fmt: skip
def test_an_address_inside_is_not_public_whatever_it_is_wrapped_in(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "1.1.1.1", "2606:4700:4700::1111", "2a00:1450:4001::200e"])
def test_the_open_internet_is(address: str) -> None:
    assert is_public(address)
