"""Recognises a document by the start of its content; the name decides only between kinds of plain text."""

import re

HEAD = 4096
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_MAGIC: tuple[tuple[bytes, int, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", 0, "picture"), (b"\xff\xd8\xff", 0, "picture"), (b"GIF87a", 0, "picture"),
    (b"GIF89a", 0, "picture"), (b"II*\x00", 0, "picture"), (b"MM\x00*", 0, "picture"),
    (b"%PDF-", 0, "pdf"), (b"PK\x03\x04", 0, "package"), (b"PK\x05\x06", 0, "package"), (b"PAR1", 0, "parquet"),
    (b"ustar", 257, "tar"), (b"\x1f\x8b", 0, "compressed"), (b"BZh", 0, "compressed"), (b"\xfd7zXZ\x00", 0, "compressed"),
    (b"\x1aE\xdf\xa3", 0, "matroska"), (b"ID3", 0, "sound"), (b"fLaC", 0, "sound"), (b"OggS", 0, "sound"),
    (b"FORM", 0, "sound"), (b"\xff\xfb", 0, "sound"), (b"\xff\xf3", 0, "sound"), (b"\xff\xf1", 0, "sound"),
    (b"0&\xb2u\x8ef\xcf\x11", 0, "sound"),
)  # fmt: skip
_PICTURE_BRANDS = frozenset((b"heic", b"heix", b"mif1", b"msf1", b"hevc", b"avif", b"avis"))
_BY_ENDING = {
    "csv": "csv", "tsv": "csv", "tab": "csv", "ipynb": "notebook", "eml": "mail", "svg": "svg", "html": "web", "htm": "web",
    "xhtml": "web",
}  # fmt: skip
_MAIL = re.compile(rb"(?:[A-Za-z][A-Za-z0-9-]*: ?[^\r\n]*(?:\r?\n[ \t][^\r\n]*)*\r?\n){2}")


def kind_of(head: bytes) -> str | None:
    """The kind of a file that is no text, by its first bytes; None for text and unknown content."""
    for magic, at, kind in _MAGIC:
        if head[at : at + len(magic)] == magic:
            return kind
    if head[4:8] == b"ftyp":
        return "picture" if head[8:12] in _PICTURE_BRANDS else "mp4"
    if head[:4] == b"RIFF":
        return {b"WEBP": "picture", b"WAVE": "sound", b"AVI ": "avi"}.get(head[8:12])
    # A PDF may begin after some bytes of another format.
    if head[:2] == b"BM" and head[6:10] == bytes(4):
        return "picture"
    return "pdf" if b"%PDF-" in head[:1024] and b"\0" not in head[:64] and b"obj" in head else None


def text_kind_of(head: bytes, name: str) -> str | None:
    """The kind of a document that is written as text: by its name, then by what it begins with."""
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    if ending in _BY_ENDING:
        return _BY_ENDING[ending]
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:512]
    if start.startswith(b"<svg") or (start.startswith(b"<?xml") and b"<svg" in head):
        return "svg"
    if start[:1] == b"{" and b'"cells"' in head:
        return "notebook"
    if start[:15].lower().startswith((b"<!doctype html", b"<html")):
        return "web"
    return "mail" if _MAIL.match(head) else None
