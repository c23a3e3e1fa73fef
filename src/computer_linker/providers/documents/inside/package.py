"""ZIP packages (OOXML, OpenDocument, EPUB and archives), read with bounds on what each part may unpack to."""

import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from computer_linker.providers.documents.inside.base import MAX_PART, Refused, damaged, invalid, too_large

_MAX_PARTS = 100_000
_MAX_STREAM = 4 << 30
_CHUNK = 1 << 18


class Package:
    """An open ZIP file. Nothing is ever unpacked to a disk, so names in it cannot lead anywhere."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        try:
            self.zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, struct.error) as error:
            raise damaged(f"it is no readable ZIP package ({error})") from None
        self.infos = {info.filename: info for info in self.zip.infolist()}
        if len(self.zip.infolist()) > _MAX_PARTS:
            raise Refused("limit_exceeded", f"The package has more than {_MAX_PARTS} parts.")

    def __contains__(self, name: str) -> bool:
        return name in self.infos

    def read(self, name: str, limit: int = MAX_PART) -> bytes:
        """One whole part, up to `limit` bytes."""
        pieces, size = [], 0
        for piece in self.stream(name):
            size += len(piece)
            if size > limit:
                raise too_large(f"The part {name}", limit)
            pieces.append(piece)
        return b"".join(pieces)

    def stream(self, name: str) -> Iterator[bytes]:
        """A part in pieces of at most 256 KB."""
        info = self.infos.get(name)
        if info is None:
            raise damaged(f"the part {name} is missing")
        if info.flag_bits & 1:
            raise invalid("It is encrypted, and passwords are not supported.")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            yield from self._by_zipfile(info)
            return
        self.file.seek(info.header_offset)
        head = self.file.read(30)
        if len(head) < 30 or head[:4] != b"PK\3\4":
            raise damaged(f"the part {name} has no header")
        skip = sum(struct.unpack("<HH", head[26:30]))
        at, left, done = info.header_offset + 30 + skip, info.compress_size, 0
        inflate = _inflater() if info.compress_type == zipfile.ZIP_DEFLATED else None
        while left > 0:
            self.file.seek(at)
            raw = self.file.read(min(left, 1 << 18))
            if not raw:
                raise damaged(f"the part {name} ends early")
            at, left = at + len(raw), left - len(raw)
            for piece in _inflated(inflate, raw, name):
                done += len(piece)
                if done > _MAX_STREAM:
                    raise too_large(f"The part {name}", _MAX_STREAM)
                yield piece

    def _by_zipfile(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        try:
            with self.zip.open(info) as part:
                while piece := part.read(_CHUNK):
                    yield piece
        except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, RuntimeError) as error:
            raise damaged(f"the part {info.filename} cannot be unpacked ({error})") from None


def _inflater() -> Any:
    try:
        from isal import igzip_lib
    except ImportError:
        return zlib.decompressobj(-15)
    # Of the library's two interfaces the one that keeps its own input, and so copies less.
    return igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_DEFLATE)


def _inflated(inflate: Any, raw: bytes, name: str) -> Iterator[bytes]:
    if inflate is None:
        yield raw
        return
    while True:
        try:
            piece = inflate.decompress(raw, _CHUNK)
        # isal raises an exception type of its own, derived from OSError.
        except (zlib.error, OSError, ValueError, EOFError) as error:
            raise damaged(f"the part {name} cannot be unpacked ({error})") from None
        if piece:
            yield piece
        raw = getattr(inflate, "unconsumed_tail", b"")
        is_empty = getattr(inflate, "needs_input", not raw and not piece)
        if inflate.eof or is_empty:
            return
