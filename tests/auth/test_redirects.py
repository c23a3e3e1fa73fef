"""Which addresses a code may be sent to, and which of them a client registered."""

import pytest

from computer_linker.auth.oauth.redirects import is_allowed_redirect, is_registered

PORTLESS = [
    "http://127.0.0.1/callback",
    "http://localhost/callback?a=1",
    "http://[::1]/callback",
    "https://web.example/cb",
]


@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1:49152/callback", "http://127.0.0.1/callback", "http://localhost:1/callback?a=1",
        "http://[::1]:8080/callback", "https://web.example/cb",
    ],
)  # fmt: skip
def test_a_program_on_the_users_machine_may_listen_on_any_port(uri: str) -> None:
    assert is_registered(uri, PORTLESS)


@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1:49152/callback/", "http://127.0.0.1:49152/other", "http://127.0.0.1:49152/callback?x=1",
        "http://localhost:49152/callback", "http://127.0.0.2:49152/callback", "http://127.0.0.1:0/callback",
        "http://127.0.0.1:080/callback", "http://127.0.0.1:99999/callback", "http://127.0.0.1:/callback",
        "http://127.0.0.1:1@evil.example/callback", "http://evil.example:80/callback", "https://web.example:444/cb",
        "https://127.0.0.1:49152/callback", "http://127.0.0.1:49152", "http://LOCALHOST:1/callback?a=1", "",
        "http://127.0.0.1:49152/callback#x", "http://[::1]:8080/callback2", "http://127.0.0.1:1/callback\n",
    ],
)  # fmt: skip
def test_anything_else_is_compared_to_the_letter(uri: str) -> None:
    assert not is_registered(uri, PORTLESS)


def test_a_port_that_was_registered_is_the_only_one() -> None:
    assert is_registered("http://127.0.0.1:7777/cb", ["http://127.0.0.1:7777/cb"])
    assert not is_registered("http://127.0.0.1:7778/cb", ["http://127.0.0.1:7777/cb"])
    assert not is_registered("http://127.0.0.1/cb", ["http://127.0.0.1:7777/cb"])


@pytest.mark.parametrize(
    "uri", ["https://a.example/cb", "https://a_b.example:8443/x?y=1", "http://localhost/x", "http://[::1]:9/"]
)
def test_https_and_loopback_may_be_registered(uri: str) -> None:
    assert is_allowed_redirect(uri)
