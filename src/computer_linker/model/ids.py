"""Ids: ULIDs for operations (they sort by time), random handles for what a caller holds."""

import os
import secrets
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_last = 0


def new_ulid() -> str:
    """A ULID; ids made by one process are strictly increasing."""
    global _last
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    if value <= _last:
        value = _last + 1
    _last = value
    pairs = _PAIRS
    return "".join([pairs[(value >> shift) & 1023] for shift in range(120, -1, -10)])


def new_handle(prefix: str) -> str:
    """An unguessable handle such as `proc_…`; holding one is not authentication."""
    return f"{prefix}_{secrets.token_hex(12)}"
