"""File URIs, as the Language Server Protocol names files."""

from urllib.parse import quote, unquote


def uri_of(path: str) -> str:
    """The file URI of an absolute path."""
    return "file://" + quote(path, safe="/!$&'()*+,;=@-._~")


def path_of(uri: str) -> str | None:
    """The absolute path of a file URI; None for another kind of URI."""
    if not uri.startswith("file://"):
        return None
    rest = uri[len("file://") :]
    return unquote(rest[rest.find("/") :], errors="surrogateescape") if "/" in rest else None
