"""Archives as a listing and one member. Nothing is unpacked to a disk, and no name in an archive is ever opened."""

import bz2
import gzip
import lzma
import tarfile
import zlib
from collections.abc import Iterable
from typing import BinaryIO

from computer_linker.providers.documents.inside.base import (
    MAX_PART,
    Document,
    Part,
    Payload,
    Refused,
    Request,
    damaged,
    no_image,
    too_large,
)
from computer_linker.providers.documents.inside.package import Package

_MAX_LISTED = 50_000
_FAULTS = (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError, ValueError, MemoryError, RecursionError)


def zip_archive(package: Package, request: Request) -> Document | Payload:
    """The names and sizes in a ZIP archive, or one member."""
    if request.member is not None:
        if request.member not in package:
            raise _absent(request.member)
        return Payload("member", {"name": request.member}, package.read(request.member))
    if request.wants_image:
        no_image("ZIP archive")
    entries = ((info.filename, info.file_size, "") for info in package.zip.infolist())
    return _listing("ZIP archive", entries)


def tar_archive(file: BinaryIO, request: Request) -> Document | Payload:
    """The names and sizes in a tar archive, compressed or not, or one member; links are not followed."""
    try:
        with tarfile.open(fileobj=file, mode="r|*") as archive:
            if request.member is None:
                if request.wants_image:
                    no_image("tar archive")
                return _listing("tar archive", ((one.name, one.size, _about(one)) for one in archive))
            for one in archive:
                if one.name in (request.member, f"./{request.member}"):
                    return _member(archive, one)
    except _FAULTS as error:
        raise damaged(f"the archive cannot be read ({str(error)[:200]})") from None
    raise _absent(request.member)


def _about(one: tarfile.TarInfo) -> str:
    return f"link to {one.linkname}" if one.issym() or one.islnk() else "" if one.isfile() or one.isdir() else "special"


def _member(archive: tarfile.TarFile, one: tarfile.TarInfo) -> Payload:
    if not one.isfile():
        raise Refused("invalid_request", f"{one.name} is no regular file in the archive.")
    if one.size > MAX_PART:
        raise too_large(f"The member {one.name}", MAX_PART)
    held = archive.extractfile(one)
    return Payload("member", {"name": one.name}, b"" if held is None else held.read(MAX_PART))


def compressed(file: BinaryIO, request: Request) -> Document | Payload:
    """A gzip, bzip2 or xz file: a tar archive in it, else its one content as the member `content`."""
    head = file.read(6)
    file.seek(0)
    opener = gzip.open if head[:2] == b"\x1f\x8b" else bz2.open if head[:3] == b"BZh" else lzma.open
    try:
        with opener(file, "rb") as inner:
            start = inner.read(512)
            if start[257:262] == b"ustar" or (len(start) == 512 and _is_old_tar(start)):
                file.seek(0)
                return tar_archive(file, request)
            whole = start + inner.read(MAX_PART + 1)
    except _FAULTS as error:
        raise damaged(f"it cannot be unpacked ({str(error)[:200]})") from None
    if len(whole) > MAX_PART:
        raise too_large("Its content", MAX_PART)
    return Payload("member", {"name": "content"}, whole)


def _is_old_tar(block: bytes) -> bool:
    try:
        tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def _listing(kind: str, entries: Iterable[tuple[str, int, str]]) -> Document:
    lines: list[str] = []
    total, is_cut = 0, False
    for name, size, about in entries:
        if len(lines) >= _MAX_LISTED:
            is_cut = True
            break
        total += size
        printable = name.encode("utf-8", "replace").decode().replace("\n", "\\n")
        lines.append(f"{printable}\t{about or ('' if printable.endswith('/') else size)}".rstrip("\t"))
    facts = {"members": len(lines), "unpacked": total}
    return Document(kind, parts=[Part(1, "\n".join(lines) + "\n" if lines else "")], facts=facts, is_cut=is_cut)


def _absent(name: str | None) -> Refused:
    return Refused("not_found", f"There is no member {name!r} in the archive; read it without `member` for the names.")
