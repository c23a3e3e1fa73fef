"""The system's keyring, where one is installed and unlocked. Nothing here waits for a person."""

import os
import threading
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

_SERVICE = "computer-linker"
_PATIENCE_S = 5.0
T = TypeVar("T")


def store(home: Path, what: str, text: str) -> bool:
    """Store a text under a name of this state folder; False unless it can be read back."""
    return bool(_within_time(lambda: _stored(_name(home, what), text)))


def read(home: Path, what: str) -> str | None:
    """The stored text; None where there is none, or the keyring cannot be opened now."""
    return _within_time(lambda: _read(_name(home, what)))


def _within_time(ask: Callable[[], T]) -> T | None:
    """The keyring's answer, or None: some prompt the person, and a service must never wait for an answer that may not come."""
    answers: list[T] = []
    asking = threading.Thread(target=lambda: answers.append(ask()), name="keyring", daemon=True)
    asking.start()
    asking.join(_PATIENCE_S)
    return answers[0] if answers else None


def _open() -> Any:
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


def _stored(name: str, text: str) -> bool:
    ring = _open()
    if ring is None:
        return False
    try:
        ring.set_password(_SERVICE, name, text)
    except (ring.errors.KeyringError, OSError):
        return False
    return _read(name) == text


def _read(name: str) -> str | None:
    ring = _open()
    if ring is None:
        return None
    try:
        found = ring.get_password(_SERVICE, name)
    except (ring.errors.KeyringError, OSError):
        return None
    return None if found is None else str(found)


def _name(home: Path, what: str) -> str:
    """One name for each state folder: two services of one person are two machines."""
    return f"{what} {sha256(os.fsencode(home.resolve())).hexdigest()[:16]}"
