"""Ids: ULIDs for operations (they sort by time), random handles for objects a caller holds."""

import os
import secrets
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_BLOCK = 1 << 20
_millisecond = 0
_prefix = ""
_next = _BLOCK


def new_ulid() -> str:
    """A ULID; ids made by one process are strictly increasing. Those of one millisecond count up from a random start."""
    global _millisecond, _prefix, _next
    now = time.time_ns() // 1_000_000
    if now > _millisecond or _next >= _BLOCK:
        # A clock that was set back, or a full block, continues in the next millisecond.
        _millisecond = now if now > _millisecond else _millisecond + 1
        drawn = int.from_bytes(os.urandom(11), "big")
        high = _millisecond << 60 | drawn >> 28
        # The low 20 bits count; they start in the lower half, so that there is room to count.
        _prefix = "".join([_PAIRS[(high >> shift) & 1023] for shift in range(100, -1, -10)])
        _next = drawn & (_BLOCK // 2 - 1)
    value = _next
    _next += 1
    return _prefix + _PAIRS[value >> 10] + _PAIRS[value & 1023]


_KEY_DIGITS = 20
"""Length of the prefix that identifies a key; a shorter one could be matched by a key generated for it."""


def short_key(fingerprint: str) -> str:
    """A short form of a key's fingerprint for a principal's id, in groups, so that redaction does not take it for a secret."""
    return ":".join(fingerprint[at : at + 4] for at in range(0, _KEY_DIGITS, 4))


SHORT = 7
"""The last characters of an operation id; the first are the time, which neighbours share."""


def short_id(operation_id: str) -> str:
    """What a person or a model writes; `history show`, `undo` and `file.undo` take it."""
    return operation_id[-SHORT:]


def new_handle(prefix: str) -> str:
    """An unguessable handle such as `proc_…`; holding one is not authentication."""
    return f"{prefix}_{secrets.token_hex(12)}"
