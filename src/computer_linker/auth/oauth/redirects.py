"""Where a code may be sent: https, or loopback on the user's own machine. Compared as strings, never normalised."""

import re
from typing import Any
from urllib.parse import urlencode, urlsplit

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_MAX_LENGTH = 2000
_AUTHORITY = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
"""A plain host and port. Other characters a URL allows there have a meaning in our response headers."""


def is_allowed_redirect(uri: Any) -> bool:
    """True for an https URL, or http on loopback, without fragment, user or control characters."""
    if type(uri) is not str or len(uri) > _MAX_LENGTH or not uri.isascii() or not uri.isprintable() or " " in uri:
        return False
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError:
        return False
    if parts.fragment or "#" in uri or "\\" in uri or port == 0 or not _AUTHORITY.fullmatch(parts.netloc):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)


def is_registered(uri: str, registered: list[str]) -> bool:
    """True for a redirect registered to the letter, or for a loopback one registered without a port, on any port.

    A native app gets its port only when it starts to listen (RFC 8252, 7.3).
    """
    if uri in registered:
        return True
    if not is_allowed_redirect(uri):
        return False
    parts = urlsplit(uri)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    before = f"http://{host}:{parts.port}/"
    is_local = parts.hostname in _LOOPBACK and parts.port is not None and uri.startswith(before)
    return is_local and f"http://{host}/{uri.removeprefix(before)}" in registered


def is_loopback(uri: str) -> bool:
    """True for a redirect to the user's own machine."""
    return urlsplit(uri).hostname in _LOOPBACK


def with_parameters(uri: str, **parameters: str | None) -> str:
    """Return the redirect with these parameters added; an existing query is kept."""
    query = urlencode({key: value for key, value in parameters.items() if value is not None})
    return f"{uri}{'&' if urlsplit(uri).query else '?'}{query}"
