"""The public keys of an SSH host that the owner has recorded, in `known_hosts` or in a file of their own."""

import base64
import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path

from computer_linker.errors import InvalidRequest
from computer_linker.vault.ssh_key import host_name, public_blob

_USUAL = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
_MAX_BYTES = 4_000_000
_SHA1 = "|1|"
"""Begins a name that is stored as its keyed digest."""


def recorded_keys(host: str, port: int, file: str | None) -> list[str]:
    """The keys as `TYPE BASE64`, from a file or from the usual ones. Raises InvalidRequest without any."""
    places = [Path(file)] if file is not None else [Path(place).expanduser() for place in _USUAL]
    found = [key for place in places for key in _keys_in(place, host_name(host, port), is_named=file is not None)]
    kept = [key for key, is_revoked in found if not is_revoked]
    revoked = {key for key, is_revoked in found if is_revoked}
    keys = list(dict.fromkeys(key for key in kept if key not in revoked))
    if not keys:
        raise InvalidRequest(
            f"No key of the host {host_name(host, port)} is recorded in {file or 'your known_hosts'}.",
            hint="ssh-keyscan writes its keys; compare their fingerprints with the host's own, then --host-key FILE",
            field="host_key",
        )
    return keys


def fingerprint(key: str) -> str:
    """The fingerprint of a public key, as ssh shows it."""
    digest = hashlib.sha256(public_blob(key)).digest()
    return f"{key.split()[0]} SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def _keys_in(path: Path, name: str, *, is_named: bool) -> Iterator[tuple[str, bool]]:
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError as error:
        if is_named:
            raise InvalidRequest(f"{path.name} cannot be read: {error.strerror}.", field="host_key") from None
        return
    for line in text.splitlines():
        words = line.split()
        if is_named and (key := _key(words)):
            yield key, False
        is_revoked = words[:1] == ["@revoked"]
        words = words[1:] if is_revoked else words
        # A certificate authority would let a host have a key that the owner never saw.
        if words and any(_is_name(each, name) for each in words[0].split(",")) and (key := _key(words[1:])):
            yield key, is_revoked


def _key(words: list[str]) -> str | None:
    key = " ".join(words[:2])
    try:
        public_blob(key)
    except ValueError:
        return None
    return key


def _is_name(stored: str, name: str) -> bool:
    if not stored.startswith(_SHA1):
        return stored.lower() == name
    salt, _, digest = stored.removeprefix(_SHA1).partition("|")
    try:
        made = hmac.new(base64.b64decode(salt), name.encode(), hashlib.sha1).digest()
        return hmac.compare_digest(made, base64.b64decode(digest))
    except ValueError:
        return False
