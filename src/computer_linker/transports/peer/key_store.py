"""Where this machine's private key lies: in the system's keyring where there is one, else in a private file."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from computer_linker.config.store import write_whole
from computer_linker.errors import ProviderUnavailable

_SERVICE = "computer-linker"
_FILE = "peer-key.pem"


def keep_key(home: Path, key_pem: bytes) -> None:
    """Store a new key: in the keyring when it can be read back from there, else in a file only we can read."""
    ring = _keyring()
    if ring is not None and _kept(ring, home, key_pem):
        return
    write_whole(home, _FILE, key_pem)


def read_key(home: Path) -> bytes:
    """The key. Raises ProviderUnavailable while the keyring that holds it is closed; it is never made anew for that."""
    path = home / _FILE
    if path.exists():
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
        return path.read_bytes()
    ring = _keyring()
    found = None if ring is None else _asked(ring, home)
    if found is None:
        raise ProviderUnavailable(
            "This computer's key for other computers is in the system's keyring, which cannot be opened now. "
            "Unlock it (sign in to the desktop), then try again.",
            remedy="unlock the keyring",
        )
    return found


@contextmanager
def as_file(key_pem: bytes) -> Iterator[str]:
    """The key under a path for as long as the body runs: TLS reads keys from files alone."""
    with tempfile.TemporaryDirectory() as private:
        path = Path(private) / "key.pem"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key_pem)
        yield str(path)


def _keyring() -> Any:
    """The keyring package, where it is installed and has a real store behind it."""
    try:
        import keyring
    except ImportError:
        return None
    # Backends below 1 are those that store nothing, or store it in the open.
    return keyring if keyring.get_keyring().priority >= 1 else None


def _kept(ring: Any, home: Path, key_pem: bytes) -> bool:
    try:
        ring.set_password(_SERVICE, _name(home), key_pem.decode("ascii"))
    except ring.errors.KeyringError:
        return False
    return _asked(ring, home) == key_pem


def _asked(ring: Any, home: Path) -> bytes | None:
    try:
        found = ring.get_password(_SERVICE, _name(home))
    except ring.errors.KeyringError:
        return None
    return None if found is None else str(found).encode("ascii")


def _name(home: Path) -> str:
    """One key a state folder: two services of one person are two machines."""
    return f"peer key {sha256(os.fsencode(home.resolve())).hexdigest()[:16]}"
