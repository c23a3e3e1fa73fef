"""Addresses a browser may open: by the scope's policy, and never this service's own or a metadata service."""

import re
from collections.abc import Callable
from urllib.parse import quote, urlsplit

from computer_linker.errors import InvalidRequest, PermissionDenied
from computer_linker.model.network import WORDS, canonical_host, parse_entry
from computer_linker.model.paths import RootedPath
from computer_linker.model.scope import Scope
from computer_linker.providers.network.reach import entry_for
from computer_linker.system import os

BLANK = "about:blank"
_MAX_URL = 4096
_SCHEME = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*):")
_HOST_AND_PORT = re.compile(r"[\w.-]+:\d{1,5}(?:[/?#]|\Z)")


def place_of(scope: Scope, target: str, path: Callable[[str], RootedPath]) -> str | RootedPath:
    """Resolve a request's target: a web address, or a file of the scope.

    Raises:
        PermissionDenied: the scope's policy or the scheme forbids it.
    """
    if len(target) > _MAX_URL or not target.isprintable():
        raise InvalidRequest(f"An address has at most {_MAX_URL} printable characters.", field="target")
    if _HOST_AND_PORT.match(target):
        raise InvalidRequest("Write the address in full, such as http://localhost:3000/.", field="target")
    scheme = _SCHEME.match(target)
    if scheme is None:
        return path(target)
    match scheme[1].lower():
        case "http" | "https":
            return _web(scope, target.strip())
        case "about" if target.strip().lower() == BLANK:
            return BLANK
        case "file":
            raise PermissionDenied(
                "Files are opened by their path inside the scope, such as dist/index.html.", rule="scheme"
            )
    raise PermissionDenied(f"A browser here opens http and https addresses only, not {scheme[1]}:.", rule="scheme")


def file_url(root: str, parts: tuple[str, ...]) -> str:
    """The address of a file of the scope as the browser sees it."""
    return "file://" + quote("/".join((os.path.realpath(root).rstrip("/"), *parts)), safe="/")


def shown(text: str, scope: Scope) -> str:
    """A text with paths of the scope's files replaced by the names that clients use."""
    for number, root in enumerate(scope.roots):
        text = text.replace(file_url(root, ()) + "/", f"@{number}/" if len(scope.roots) > 1 else "")
    return text


def is_inside(url: str, scope: Scope) -> bool:
    """True where the scope may see the browser's page: the web, a blank page, or its own files."""
    low = url.lower()
    if low.startswith("file:"):
        roots = (file_url(root, ()) for root in scope.roots)
        return ".." not in url and any(url == root or url.startswith(root + "/") for root in roots)
    return low.startswith(("http://", "https://", "about:", "chrome-error:")) or not low


def _web(scope: Scope, url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidRequest("The address cannot be read.", field="target") from None
    if not parts.hostname or "\\" in url or " " in url:
        raise InvalidRequest("The address has no host.", field="target")
    if parts.username is not None or parts.password is not None:
        raise InvalidRequest("An address with a name or password in it is not opened.", field="target")
    _refuse_unlisted(scope, parts.hostname, port or (443 if parts.scheme.lower() == "https" else 80))
    return url


def _refuse_unlisted(scope: Scope, host: str, port: int) -> None:
    """Refuse a host that the scope's list does not have; the gate judges again, with the hosts of presets."""
    network = scope.policy.network
    if network is True or (network and any(entry in WORDS for entry in network)):
        return
    try:
        name = canonical_host(host)
    except ValueError:
        raise InvalidRequest("The address has no plain host name.", field="target") from None
    if not any(parse_entry(entry).covers(name, port) for entry in network or ()):
        why = (
            f"reaches only the hosts of its `network` list, and {name}:{port} is not among them"
            if network
            else "has no network; a file of the scope opens by its path"
        )
        line = f"computer-linker scope allow-host {scope.id} {entry_for(name, port)}"
        raise PermissionDenied(
            f"Scope {scope.id} {why}. The owner can allow it: {line}", rule="network", host=name, hint=line
        )
