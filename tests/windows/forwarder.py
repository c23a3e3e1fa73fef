"""A DLL without code whose one function is another DLL's: what wine before version 9 lacks, without a compiler for Windows."""

import struct

_HEADERS, _PAGE, _BASE = 0x200, 0x1000, 0x1_8000_0000


def dll(name: str, function: str, target: str) -> bytes:
    """The file `name` that exports `function`, which is `target` (`library.function`); PE32+ for x86-64."""
    section = _exports(name.encode(), function.encode(), target.encode())
    size = len(section)
    padded = section.ljust(-size % _HEADERS + size, b"\0")
    coff = struct.pack("<HHIIIHH", 0x8664, 1, 0, 0, 0, 240, 0x2022)
    optional = struct.pack(
        "<HBBIIIIIQIIHHHHHHIIIIHHQQQQII",
        0x20B, 14, 0, 0, len(padded), 0, 0, _PAGE, _BASE, _PAGE, _HEADERS, 6, 0, 0, 0, 6, 0, 0, 2 * _PAGE, _HEADERS, 0,
        3, 0, 1 << 20, 1 << 12, 1 << 20, 1 << 12, 0, 16,
    )  # fmt: skip
    directories = struct.pack("<II", _PAGE, size) + bytes(15 * 8)
    table = struct.pack("<8sIIIIIIHHI", b".rdata", size, _PAGE, len(padded), _HEADERS, 0, 0, 0, 0, 0x4000_0040)
    header = b"MZ" + bytes(58) + struct.pack("<I", 64) + b"PE\0\0" + coff + optional + directories + table
    return header.ljust(_HEADERS, b"\0") + padded


def _exports(name: bytes, function: bytes, target: bytes) -> bytes:
    """The export directory: an address within it is no code, but the name of the function to forward to."""
    at = 40 + 4 + 4 + 2 + 2
    texts = name + b"\0" + function + b"\0" + target + b"\0"
    named, exported = at, at + len(name) + 1
    forwarded = exported + len(function) + 1
    directory = struct.pack(
        "<IIHHIIIIIII", 0, 0, 0, 0, _PAGE + named, 1, 1, 1, _PAGE + 40, _PAGE + 44, _PAGE + 48
    )  # fmt: skip
    return directory + struct.pack("<IIHH", _PAGE + forwarded, _PAGE + exported, 0, 0) + texts
