"""The vault: stored secrets in one encrypted file of the state folder, and the mask of everything that leaves the service.

The file is sealed with AES-GCM. Its key is in the system's keyring where there is one; else in a file beside it, and then the
encryption protects a copy of the sealed file alone, not the state folder as a whole.
"""

import json
import math
import secrets
import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from computer_linker.config.store import write_whole
from computer_linker.errors import AlreadyExists, NotFound, ProviderUnavailable
from computer_linker.extras import remedy
from computer_linker.services import Services
from computer_linker.vault import keyring
from computer_linker.vault.mask import Mask, Replaced
from computer_linker.vault.secret import StoredSecret, names_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_SEALED, _KEY, _IN_KEYRING = "secrets.sealed", "secrets.key", "secrets key"
_NONCE = 12
_ASK_AGAIN_S = 60.0
Place = Literal["keyring", "file"]


class Vault:
    """The secrets of one state folder. Read on first use; changed by the owner's operations alone."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._masked: Mask | None = None
        self._ask_again = math.inf

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services.home)

    @cached_property
    def all(self) -> tuple[StoredSecret, ...]:
        path = self._home / _SEALED
        return tuple(_opened(path.read_bytes(), self._key())) if path.exists() else ()

    @property
    def mask(self) -> Mask:
        """Replaces every secret by its name. Empty while the keyring is locked, when no program can use one either."""
        if self._masked is None or (not self._masked and time.monotonic() >= self._ask_again):
            self._masked = self._made_mask()
        return self._masked

    def _made_mask(self) -> Mask:
        self._ask_again = math.inf
        try:
            return Mask(Replaced(part, f"[secret {each.name}]") for each in self.all for part in each.hidden)
        except ProviderUnavailable:
            self._ask_again = time.monotonic() + _ASK_AGAIN_S
            return Mask(())

    def find(self, name: str) -> StoredSecret | None:
        return next((each for each in self.all if each.name == name), None)

    def known(self, name: str) -> StoredSecret:
        """The secret of this name. Raises NotFound."""
        found = self.find(name)
        if found is None:
            raise NotFound(
                f"There is no secret {name!r}; there are: {names_of(self.all)}.", hint="computer-linker secret list"
            )
        return found

    @property
    def place(self) -> Place:
        """Where the key of the file is."""
        return "file" if (self._home / _KEY).exists() else "keyring"

    def add(self, secret: StoredSecret, *, replace: bool) -> None:
        """Store one more secret. Raises AlreadyExists unless it may replace one of its name."""
        others = tuple(each for each in self.all if each.name != secret.name)
        if len(others) != len(self.all) and not replace:
            raise AlreadyExists(f"There is a secret {secret.name!r} already.", hint="--replace stores the new value")
        self._write((*others, secret))

    def remove(self, name: str) -> StoredSecret:
        found = self.known(name)
        self._write(tuple(each for each in self.all if each.name != name))
        return found

    def _write(self, stored: tuple[StoredSecret, ...]) -> None:
        key = self._key() if (self._home / _SEALED).exists() else self._new_key()
        write_whole(self._home, _SEALED, _sealed(stored, key))
        if _opened((self._home / _SEALED).read_bytes(), key) != list(stored):
            raise ProviderUnavailable("The secrets could not be read back after they were stored.")
        self._masked = None
        self.__dict__["all"] = stored

    def _new_key(self) -> bytes:
        key = secrets.token_bytes(32)
        if not keyring.store(self._home, _IN_KEYRING, key.hex()):
            write_whole(self._home, _KEY, key)
        return key

    def _key(self) -> bytes:
        path = self._home / _KEY
        if path.exists():
            return path.read_bytes()
        found = keyring.read(self._home, _IN_KEYRING)
        if found is None:
            raise ProviderUnavailable(
                "The key of the secrets is in the system's keyring, which cannot be opened now. "
                "Unlock it (sign in to the desktop), then try again.",
                remedy="unlock the keyring",
            )
        return bytes.fromhex(found)


def _sealed(stored: tuple[StoredSecret, ...], key: bytes) -> bytes:
    nonce = secrets.token_bytes(_NONCE)
    text = json.dumps([each.to_wire() for each in stored]).encode()
    return nonce + _cipher(key).encrypt(nonce, text, _SEALED.encode())


def _opened(sealed: bytes, key: bytes) -> list[StoredSecret]:
    cipher = _cipher(key)
    from cryptography.exceptions import InvalidTag

    try:
        text = cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], _SEALED.encode())
    except InvalidTag:
        raise ProviderUnavailable(
            f"{_SEALED} in the state folder does not belong to its key.",
            remedy=f"restore both from a backup, or remove {_SEALED} and add the secrets again",
        ) from None
    return [StoredSecret.from_wire(each) for each in json.loads(text)]


def _cipher(key: bytes) -> "AESGCM":
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise ProviderUnavailable("Secrets need a further package.", remedy=remedy("secrets")) from None
    return AESGCM(key)
