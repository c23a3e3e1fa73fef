"""Writes a ZIP package anew with some parts changed; every other part is copied byte for byte, still compressed."""

import struct
import zlib

from computer_linker.providers.documents.inside.base import Refused, damaged, too_large
from computer_linker.providers.documents.inside.package import Package

_LOCAL, _CENTRAL, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
MAX_FILE = 60 << 20
_HAS_DESCRIPTOR = 8


def repacked(package: Package, changed: dict[str, bytes]) -> bytes:
    """The whole package with these parts' new contents."""
    size = package.file.seek(0, 2)
    if size > MAX_FILE:
        raise too_large("The file", MAX_FILE)
    package.file.seek(0)
    whole = package.file.read()
    end = whole.rfind(_END)
    if end < 0 or b"PK\x06\x06" in whole[package.zip.start_dir : end]:
        raise Refused("invalid_request", "A ZIP64 package is not edited.")
    if len(package.infos) != len(package.zip.infolist()):
        # Programs differ in which of the two they show, so that what a person sees is not what is edited.
        raise Refused("invalid_request", "A package with two parts of one name is not edited.")
    out = bytearray()
    offsets: dict[int, int] = {}
    facts: dict[int, tuple[int, int, int]] = {}
    infos = sorted(package.zip.infolist(), key=lambda info: info.header_offset)
    stops = [info.header_offset for info in infos[1:]] + [package.zip.start_dir]
    out += whole[: infos[0].header_offset] if infos else b""
    for info, stop in zip(infos, stops, strict=True):
        at = info.header_offset
        if whole[at : at + 4] != _LOCAL or stop < at:
            raise damaged("its parts overlap")
        offsets[at] = len(out)
        if info.filename not in changed:
            out += whole[at:stop]
            continue
        content = changed[info.filename]
        packer = zlib.compressobj(6, zlib.DEFLATED, -15)
        data = packer.compress(content) + packer.flush()
        facts[at] = zlib.crc32(content), len(data), len(content)
        out += _local(whole, at, facts[at]) + data
    return bytes(out) + _directory(whole, package.zip.start_dir, end, len(out), offsets, facts)


def _local(whole: bytes, at: int, facts: tuple[int, int, int]) -> bytes:
    version, flags, _, time, date = struct.unpack_from("<5H", whole, at + 4)
    length = struct.unpack_from("<H", whole, at + 26)[0]
    name = whole[at + 30 : at + 30 + length]
    return struct.pack("<4s5H3I2H", _LOCAL, version, flags & ~_HAS_DESCRIPTOR, 8, time, date, *facts, length, 0) + name


def _directory(
    whole: bytes, start: int, end: int, at: int, offsets: dict[int, int], facts: dict[int, tuple[int, int, int]]
) -> bytes:
    """The central directory and its end, with the new offsets and sizes."""
    out, place, count = bytearray(), start, 0
    while whole[place : place + 4] == _CENTRAL:
        lengths = struct.unpack_from("<3H", whole, place + 28)
        entry = bytearray(whole[place : place + 46 + sum(lengths)])
        old = struct.unpack_from("<I", entry, 42)[0]
        if old not in offsets:
            raise damaged("its directory names a part that is not there")
        struct.pack_into("<I", entry, 42, offsets[old])
        if old in facts:
            flags = struct.unpack_from("<H", entry, 8)[0] & ~_HAS_DESCRIPTOR
            struct.pack_into("<2H", entry, 8, flags, 8)
            struct.pack_into("<3I", entry, 16, *facts[old])
        out += entry
        place += 46 + sum(lengths)
        count += 1
    if count != len(offsets):
        raise damaged("its directory does not fit its parts")
    closing = bytearray(whole[end:])
    struct.pack_into("<2I", closing, 12, len(out), at)
    return bytes(out + closing)
