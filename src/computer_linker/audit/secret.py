"""The key of this installation: it makes the chain unforgeable and the digests unguessable."""

import secrets
from hashlib import blake2b
from pathlib import Path

from computer_linker.audit.faults import AuditDamaged
from computer_linker.system import os, sync

_BYTES = 32


class Key:
    """A private key with its two uses: seals and digests."""

    def __init__(self, material: bytes) -> None:
        self._chain = blake2b(key=material, digest_size=16, person=b"cl-chain")
        self._digest = blake2b(key=material, digest_size=8, person=b"cl-digest")

    def seal(self, previous: bytes, body: bytes) -> bytes:
        """The link of a record to the one before it, as 32 hexadecimal digits."""
        link = self._chain.copy()
        link.update(previous)
        link.update(body)
        return link.hexdigest().encode("ascii")

    def digest(self, text: str) -> str:
        """The same text gives the same digest here, and nowhere else."""
        digest = self._digest.copy()
        digest.update(text.encode("utf-8", errors="surrogatepass"))
        return digest.hexdigest()


def load_key(path: Path) -> Key:
    """Load the key in `path`, created on first use. Two processes that create it at once agree on one."""
    try:
        material = path.read_bytes()
    except FileNotFoundError:
        material = _make(path)
    if len(material) != _BYTES:
        raise AuditDamaged(
            f"{path.name} in the history folder is not a key of this service.",
            hint="Restore it from a backup, or move the whole history folder aside to begin a new history.",
        )
    return Key(material)


def _make(path: Path) -> bytes:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        os.write(handle, secrets.token_bytes(_BYTES))
        sync(handle)
    finally:
        os.close(handle)
    try:
        # A link fails when the name exists, so the first process wins and the other uses its key.
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()
    return path.read_bytes()
