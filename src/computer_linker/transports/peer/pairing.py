"""Pairing: a one-time code of 130 bits shown on one machine and typed on the other proves both keys to each other.

The code is long enough that no password-authenticated exchange is needed: each side sends an HMAC, keyed by the code, over both
certificates and both nonces. Without the code no one can answer or search for it.
"""

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass

from computer_linker.policy.grants import Places

_ALPHABET = "ABCDEFGHJKMNPQRSTVWXYZ0123456789"
_LENGTH = 26
_VALID_S = 300
_MAX_WRONG = 3


@dataclass(slots=True)
class Invitation:
    """One code, valid once and for five minutes."""

    code: str
    grants: tuple[str, ...]
    places: Places
    expires_at: float
    wrong: int = 0


class Invitations:
    """The codes that are open on this machine."""

    def __init__(self) -> None:
        self._open: Invitation | None = None

    @property
    def is_open(self) -> bool:
        """Whether a code is shown now."""
        return self._open is not None and self._open.expires_at >= time.monotonic()

    def make(self, grants: tuple[str, ...], places: Places | None = None) -> Invitation:
        """Create a new code; an older one becomes void. `places` is where the granted scopes are."""
        code = "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
        self._open = Invitation(code, grants, places or {}, time.monotonic() + _VALID_S)
        return self._open

    def answer(self, proof: bytes, transcript: bytes) -> Invitation | None:
        """Use up the open code when the proof was made with it; three wrong proofs void it."""
        invitation = self._open
        if invitation is None or invitation.expires_at < time.monotonic():
            self._open = None
            return None
        if not hmac.compare_digest(proof, joiner_proof(invitation.code, transcript)):
            invitation.wrong += 1
            if invitation.wrong >= _MAX_WRONG:
                self._open = None
            return None
        self._open = None
        return invitation


def grouped(code: str) -> str:
    """The code in groups, for people to read."""
    return "-".join(code[at : at + 5] for at in range(0, len(code), 5))


def typed(code: str) -> str:
    """The code normalized: without dashes and spaces, any case, look-alikes mapped into the alphabet."""
    plain = code.replace("-", "").replace(" ", "").upper()
    return plain.replace("O", "0").replace("I", "1").replace("L", "1").replace("U", "V")


def transcript_of(host_cert: str, joiner_cert: str, host_nonce: bytes, joiner_nonce: bytes) -> bytes:
    """What both sides prove: exactly these keys, in this exchange."""
    parts = (host_cert.encode(), joiner_cert.encode(), host_nonce, joiner_nonce)
    return b"".join(hashlib.sha256(part).digest() for part in parts)


def joiner_proof(code: str, transcript: bytes) -> bytes:
    """The joining machine's proof."""
    return hmac.digest(typed(code).encode(), b"computer-linker pair joiner" + transcript, "sha256")


def host_proof(code: str, transcript: bytes) -> bytes:
    """The inviting machine's proof."""
    return hmac.digest(typed(code).encode(), b"computer-linker pair host" + transcript, "sha256")
