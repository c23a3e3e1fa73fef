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
    """The digest under which a token can be stored, so that the file alone gives no access. It is random: no salt is needed."""
    return "sha256:" + hashlib.sha256(token.encode()).hexdigest()


def is_digest(kept: str) -> bool:
    """True when the config keeps the digest only."""
    return _DIGEST.fullmatch(kept) is not None


def kept_digest(kept: str) -> str:
    """The digest of the token, stored in clear or as a digest."""
    return kept if is_digest(kept) else digest_of(kept)


def matches(kept: str, presented: str) -> bool:
    """Whether the presented token is the stored one. Digests are compared, so timing reveals no length or prefix."""
    wanted = kept_digest(kept)
    given = digest_of(presented.encode("utf-8", "surrogatepass").decode("utf-8", "replace"))
    return hmac.compare_digest(wanted, given)


def shown(kept: str | None) -> str:
    """A description of the token for reports that does not reveal it."""
    if kept is None:
        return "none"
    return "kept as a digest" if is_digest(kept) else "set"
