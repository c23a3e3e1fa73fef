"""The owner's token: made here, kept in clear or as a digest, compared in constant time."""

import hashlib
import hmac
import re
import secrets

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def new_token() -> str:
    """A token of 256 random bits that fits into a header and a shell word."""
    return secrets.token_urlsafe(32)


def digest_of(token: str) -> str:
    """How a token can be kept so that the file alone opens nothing. It is random, so a plain digest is enough."""
    return "sha256:" + hashlib.sha256(token.encode()).hexdigest()


def is_digest(kept: str) -> bool:
    """True when the config keeps the digest only."""
    return _DIGEST.fullmatch(kept) is not None


def kept_digest(kept: str) -> str:
    """The digest of the token, whichever way the config keeps it."""
    return kept if is_digest(kept) else digest_of(kept)


def matches(kept: str, presented: str) -> bool:
    """Whether the presented token is the one kept. Digests are compared: no length or prefix shows in the time."""
    wanted = kept_digest(kept)
    given = digest_of(presented.encode("utf-8", "surrogatepass").decode("utf-8", "replace"))
    return hmac.compare_digest(wanted, given)


def shown(kept: str | None) -> str:
    """How a report speaks of the token without giving it away."""
    if kept is None:
        return "none"
    return "kept as a digest" if is_digest(kept) else "set"
