"""Storage of this machine's private key: in the system's keyring where there is one, else in a private file."""

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from computer_linker.config.store import write_whole
from computer_linker.errors import ProviderUnavailable

_SERVICE = "computer-linker"
_FILE = "peer-key.pem"
_PATIENCE_S = 5.0
T = TypeVar("T")


def keep_key(home: Path, key_pem: bytes) -> None:
    """Store a new key: in the keyring when it can be read back, else in a file only we can read."""
    if not _within_time(lambda: _stored_in_keyring(home, key_pem)):
        write_whole(home, _FILE, key_pem)


def read_key(home: Path) -> bytes:
    """Read the key. Raises ProviderUnavailable while its keyring is locked; a locked key is never replaced by a new one."""
    path = home / _FILE
    if path.exists():
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
        return path.read_bytes()
    found = _within_time(lambda: _read_from_keyring(home))
    if found is None:
        raise ProviderUnavailable(
            "This computer's key for other computers is in the system's keyring, which cannot be opened now. "
            "Unlock it (sign in to the desktop), then try again.",
            remedy="unlock the keyring",
        )
    return found


@contextmanager
def as_file(key_pem: bytes) -> Iterator[str]:
    """The key at a path while the body runs: the TLS library reads keys only from files."""
    with tempfile.TemporaryDirectory() as private:
        path = Path(private) / "key.pem"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key_pem)
        yield str(path)


def _within_time(ask: Callable[[], T]) -> T | None:
    """The keyring's answer, or None: some prompt the person, and a service must never wait for an answer that may not come."""
    answers: list[T] = []
    asking = threading.Thread(target=lambda: answers.append(ask()), name="keyring", daemon=True)
    asking.start()
    asking.join(_PATIENCE_S)
    return answers[0] if answers else None


def _open_keyring() -> Any:
    """The keyring package, where it is installed and has a real, unlocked store."""
    try:
        import keyring
    except ImportError:
        return None
    backend = keyring.get_keyring()
    # Backends with a priority below 1 store nothing, or store it in plain text.
    if backend.priority < 1:
        return None
    used = [backend, *getattr(backend, "backends", ())]
    is_linux = any(type(one).__module__.endswith("SecretService") for one in used)
    return keyring if not is_linux or _is_unlocked() else None


def _is_unlocked() -> bool:
    """Whether the Secret Service's default collection exists and is unlocked. The library itself would create one, or prompt."""
    import secretstorage

    try:
        with closing(secretstorage.dbus_init()) as bus:
            return not secretstorage.Collection(bus).is_locked()
    except (secretstorage.exceptions.SecretStorageException, OSError):
        return False


def _stored_in_keyring(home: Path, key_pem: bytes) -> bool:
    ring = _open_keyring()
    if ring is None:
        return False
    try:
        ring.set_password(_SERVICE, _name(home), key_pem.decode("ascii"))
    except (ring.errors.KeyringError, OSError):
        return False
    return _read_from_keyring(home) == key_pem


def _read_from_keyring(home: Path) -> bytes | None:
    ring = _open_keyring()
    if ring is None:
        return None
    try:
        found = ring.get_password(_SERVICE, _name(home))
    except (ring.errors.KeyringError, OSError):
        return None
    return None if found is None else str(found).encode("ascii")


def _name(home: Path) -> str:
    """One key for each state folder: two services of one person are two machines."""
    return f"peer key {sha256(os.fsencode(home.resolve())).hexdigest()[:16]}"
