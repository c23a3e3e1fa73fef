"""Kinds of artifacts, the mapping of other names to them, and content type detection."""

import re
from typing import Any, Literal, get_args

ProofKind = Literal[
    "screenshot", "video_recording", "browser_trace", "browser_verification", "console_logs", "network_log", "document",
    "accessibility_tree", "evidence",
]  # fmt: skip
KINDS: tuple[str, ...] = get_args(ProofKind)

_ALIASES: dict[str, ProofKind] = {
    "screenshot": "screenshot", "image": "screenshot", "png": "screenshot", "screen_capture": "screenshot",
    "annotated_screenshot": "screenshot", "video": "video_recording", "recording": "video_recording", "webm": "video_recording",
    "screen_recording": "video_recording", "trace": "browser_trace", "playwright_trace": "browser_trace",
    "verification": "browser_verification", "browser_check": "browser_verification", "assertion": "browser_verification",
    "console": "console_logs", "console_log": "console_logs", "log": "console_logs", "logs": "console_logs",
    "errors": "console_logs",
    "har": "network_log", "network": "network_log", "pdf": "document", "report": "document", "ax_tree": "accessibility_tree",
}  # fmt: skip

MIME_BY_KIND: dict[str, tuple[str, ...]] = {
    "screenshot": ("image/png", "image/jpeg", "image/webp", "image/gif"),
    "video_recording": ("video/webm", "video/mp4", "video/x-matroska"),
}
"""Kinds whose bytes must be of these types. Others are stored unchecked and served as attachments."""

_BY_MEDIA: dict[str, ProofKind] = {
    **dict.fromkeys(MIME_BY_KIND["screenshot"], "screenshot"),
    **dict.fromkeys(MIME_BY_KIND["video_recording"], "video_recording"),
    "application/pdf": "document", "text/plain": "document",
}  # fmt: skip
_MAGIC: tuple[tuple[bytes, int, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", 0, "image/png"),
    (b"\xff\xd8\xff", 0, "image/jpeg"),
    (b"GIF8", 0, "image/gif"),
    (b"WEBP", 8, "image/webp"),
    (b"\x1aE\xdf\xa3", 0, "video/webm"),
    (b"ftyp", 4, "video/mp4"),
    (b"%PDF-", 0, "application/pdf"),
    (b"PK\x03\x04", 0, "application/zip"),
    (b"\x1f\x8b", 0, "application/gzip"),
    (b"\x7fELF", 0, "application/x-executable"),
    (b"MZ", 0, "application/x-executable"),
    (b"\xcf\xfa\xed\xfe", 0, "application/x-executable"),
    (b"#!", 0, "application/x-executable"),
)
HEAD = 4096
"""The number of bytes that suffice to detect a file's type."""
REFUSED_TYPES = frozenset({"application/x-executable"})


def normalised_kind(*names: Any, has_text: bool = False) -> ProofKind:
    """The kind of the first meaningful name; without one, text is a log and anything else a verification."""
    for name in names:
        kind = kind_named(name)
        if kind is not None:
            return kind
    return "console_logs" if has_text else "browser_verification"


def kind_of_file(path: str, content: bytes) -> ProofKind:
    """Return the kind of an unlabelled file: by extension, name, then content."""
    name, _, ending = path.rpartition("/")[2].rpartition(".")
    # A text called image.txt is no image: images and videos are detected by extension or content.
    named = None if kind_named(name) in MIME_BY_KIND else kind_named(name)
    return kind_named(ending) or named or _BY_MEDIA.get(media_type(content[:HEAD]), "evidence")


def kind_named(name: Any) -> ProofKind | None:
    """The kind of this name, or of a known other spelling of it."""
    if type(name) is not str:
        return None
    plain = re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")
    if plain in KINDS:
        return plain  # type: ignore[return-value]  # just checked
    return _ALIASES.get(plain)


def media_type(head: bytes) -> str:
    """Detect the media type by content. Markup is served as plain text: no browser ever runs a stored artifact."""
    for magic, at, kind in _MAGIC:
        if head[at : at + len(magic)] == magic:
            return kind
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        # Text whose last character is cut by the end of the head is still text.
        if error.start < len(head) - 4:
            return "application/octet-stream"
        text = head[: error.start].decode("utf-8")
    if "\0" in text:
        return "application/octet-stream"
    return "application/json" if text.lstrip()[:1] in ("{", "[") else "text/plain"
