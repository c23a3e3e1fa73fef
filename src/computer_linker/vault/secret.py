"""One secret: its value, the origin it is for, and the places of a request where it may stand."""

import re
import secrets
import string
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from computer_linker.errors import InvalidRequest
from computer_linker.model.base import Model
from computer_linker.model.network import canonical_host, split_host
from computer_linker.vault.ssh_key import secret_parts

MIN_LENGTH, MAX_LENGTH = 8, 4096
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
_PREFIX = re.compile(
    r"gh[opusr]_|github_pat_|glpat-|sk-(?:ant-|proj-)?|[prs]k_(?:live|test)_|tok_|xox[abprs]-|npm_|pypi-|hf_|AKIA|ASIA|dop_v1_"
    r"|shpat_"
)
"""Prefixes by which programs recognise tokens of well-known services. Anything else at the start may be the secret itself."""
_MIN_RANDOM = 8
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_ORIGINS = "as in api.example.com, https://git.internal:8443 or ssh://git@git.example.org"
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
_CLASSES = (string.digits, "abcdef", "ABCDEF", string.ascii_lowercase, string.ascii_uppercase)


Scheme = Literal["https", "http", "ssh"]
_PORTS: dict[Scheme, int] = {"https": 443, "http": 80, "ssh": 22}


class Origin(NamedTuple):
    """Where a secret is used."""

    scheme: Scheme = "https"
    host: str = ""
    port: int = 443
    user: str = ""


class StoredSecret(Model):
    """A secret as the vault stores it."""

    name: Annotated[str, Field(pattern=NAME_PATTERN)]
    scheme: Scheme = "https"
    """`http` only for this machine, and only for pages: the gate sends no secret without TLS. `ssh` for a private key."""
    host: str = ""
    """Empty for one that is typed into an application alone."""
    port: int = 443
    user: str = ""
    """The only user that an SSH key logs in as; empty for every one."""
    host_keys: list[str] = []
    """The public keys of an SSH host, one of which it must prove to have."""
    application: str | None = None
    """The program into whose password fields it may be typed."""
    headers: list[str] = ["authorization"]
    variable: str
    authority: str | None = None
    """Certificates (PEM) that the host's own must be signed by; None for those that the system trusts."""
    value: Annotated[str, Field(repr=False)]

    @field_validator("headers")
    @classmethod
    def _lower(cls, value: list[str]) -> list[str]:
        return [name.lower() for name in value]

    @property
    def place(self) -> str:
        """What it is for, as people name it."""
        if self.application is None:
            return self.origin
        return f"the program {self.application}" + (f" and {self.origin}" if self.host else "")

    @property
    def origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        user = f"{self.user}@" if self.user else ""
        return f"{self.scheme}://{user}{host}" + ("" if self.port == _PORTS[self.scheme] else f":{self.port}")

    @property
    def hidden(self) -> Sequence[str | bytes]:
        """What must not be seen of it: the value, or the private numbers of a key."""
        return secret_parts(self.value) if self.scheme == "ssh" else [self.value]

    def is_for(self, host: str, port: int) -> bool:
        """Whether the gate sends it to this host and port."""
        return bool(self.host) and self.scheme == "https" and (self.host, self.port) == (host, port)

    def is_for_page(self, url: str) -> bool:
        """Whether a page at this address is of its origin."""
        try:
            parts = urlsplit(url)
            port = parts.port or (443 if parts.scheme == "https" else 80)
            return (parts.scheme, canonical_host(parts.hostname or ""), port) == (self.scheme, self.host, self.port)
        except ValueError:
            return False


def check_value(value: str) -> None:
    """Raise InvalidRequest for a value that cannot be sent in a header, or is too short to be found again."""
    if not MIN_LENGTH <= len(value) <= MAX_LENGTH:
        raise InvalidRequest(f"A secret has {MIN_LENGTH} to {MAX_LENGTH} characters.", field="value")
    if not value.isascii() or not value.isprintable() or value != value.strip():
        raise InvalidRequest("A secret is printable ASCII in one line, without spaces around it.", field="value")
    if len({char for char in value if char.isalnum()}) < 4:
        raise InvalidRequest("A secret has at least four different letters and digits.", field="value")


def origin_of(text: str) -> Origin:
    """The origin of `HOST[:PORT]`, with `https://` or without, of `http://localhost:PORT`, or of `ssh://[USER@]HOST[:PORT]`."""
    named, has_scheme, place = text.partition("://")
    scheme = next((each for each in _PORTS if each == named), None) if has_scheme else "https"
    place = (place if has_scheme else text).removesuffix("/")
    user, is_named, rest = place.rpartition("@")
    if scheme is None or (is_named and not (scheme == "ssh" and _USER.fullmatch(user))):
        raise InvalidRequest(f"{text[:80]!r} is not an origin that can have a secret.", field="for", hint=_ORIGINS)
    try:
        host, port = split_host(rest, _PORTS[scheme])
    except ValueError as error:
        raise InvalidRequest(f"{error}.", field="for", hint=_ORIGINS) from None
    if scheme == "http" and host not in _THIS_MACHINE:
        raise InvalidRequest("Only this machine's own pages can have a secret without TLS.", field="for")
    return Origin(scheme, host, port, user)


def placeholder_for(value: str) -> str:
    """A random text of the same shape: its length, prefix, punctuation and alphabet, and no other character of it.

    A character may be the same by chance; a text that shares the rest with the secret is not given out.
    """
    found = _PREFIX.match(value)
    kept = found.end() if found and len(value) - found.end() >= _MIN_RANDOM else 0
    alphabet = _alphabet(value[kept:])
    while True:
        made = "".join(secrets.choice(alphabet) if char.isalnum() else char for char in value[kept:])
        same = sum(one == other for one, other in zip(made, value[kept:], strict=True) if one.isalnum())
        if same * 2 < sum(char.isalnum() for char in made) or len(alphabet) < _MIN_RANDOM:
            return value[:kept] + made


def _alphabet(text: str) -> str:
    """The smallest usual alphabet that has every letter and digit of the text."""
    used = {char for char in text if char.isalnum()}
    digits, low_hex, high_hex, lower, upper = _CLASSES
    for parts in ((digits,), (digits, low_hex), (digits, high_hex), (lower,), (upper,), (digits, lower), (digits, upper),
                  (lower, upper), (digits, lower, upper)):  # fmt: skip
        if used <= set("".join(parts)):
            return "".join(parts)
    raise AssertionError("printable ASCII has no other letters")


def names_of(stored: Iterable[StoredSecret]) -> str:
    return ", ".join(each.name for each in stored) or "none"
