"""Sound and video as facts: duration, codecs, size, tags. Nothing is decoded but the containers' headers."""

import struct
from typing import Any, BinaryIO

from computer_linker.providers.documents.inside.base import Document, Part, Request, damaged, missing, no_image

_MAX_BOXES = 10_000
_INSIDE = frozenset((b"moov", b"mvex", b"trak", b"mdia", b"minf", b"stbl"))
_READ = frozenset((b"mvhd", b"mehd", b"tkhd", b"stsd"))
_EBML_INSIDE = frozenset((0x18538067, 0x1549A966, 0x1654AE6B, 0xAE, 0xE0, 0xE1))
_WAVE_CODECS = {0x0001: "pcm", 0x0050: "mp2", 0x0055: "mp3", 0x00FF: "aac", 0x2000: "ac3"}
_SCALE, _DURATION, _CODEC, _WIDTH, _HEIGHT, _TITLE, _CLUSTER = 0x2AD7B1, 0x4489, 0x86, 0xB0, 0xBA, 0x7BA9, 0x1F43B675


def _facts(kind: str, facts: dict[str, Any]) -> Document:
    lines = [f"{name}: {value}" for name, value in facts.items() if value not in (None, "", [])]
    return Document(kind, parts=[Part(1, "\n".join(lines) + "\n" if lines else "")], facts={"media": facts})


def sound(file: BinaryIO, request: Request) -> Document:
    """A sound file, by tinytag."""
    if request.wants_image:
        no_image("sound file")
    try:
        from tinytag import TinyTag, TinyTagException
    except ImportError:
        raise missing("tinytag", "A sound file") from None
    try:
        tag = TinyTag.get(request.name or "sound", file_obj=file)
    except (TinyTagException, ValueError, OSError, struct.error, LookupError, TypeError, AssertionError) as error:
        raise damaged(f"its tags cannot be read ({str(error)[:200]})") from None
    return _facts("sound", {
        "duration": _seconds(tag.duration), "channels": tag.channels, "samples per second": tag.samplerate,
        "kbit per second": None if tag.bitrate is None else round(tag.bitrate), "title": tag.title, "artist": tag.artist,
        "album": tag.album, "year": tag.year,
    })  # fmt: skip


def _seconds(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f} s"


def mp4(file: BinaryIO, request: Request) -> Document:
    """An MP4 or QuickTime file: its boxes, without the media itself."""
    if request.wants_image:
        no_image("video")
    facts: dict[str, Any] = {"duration": None}
    codecs: list[str] = []
    end = file.seek(0, 2)
    waiting, seen = [(0, end)], 0
    while waiting and seen < _MAX_BOXES:
        at, stop = waiting.pop()
        while at + 8 <= stop and seen < _MAX_BOXES:
            seen += 1
            file.seek(at)
            head = file.read(16)
            size, name = struct.unpack(">I4s", head[:8])
            skip = 8
            if size == 1 and len(head) == 16:
                size, skip = struct.unpack(">Q", head[8:16])[0], 16
            size = stop - at if size == 0 else size
            if size < skip:
                break
            if name in _INSIDE:
                waiting.append((at + skip, min(at + size, stop)))
            else:
                _box(name, file, at + skip, min(size - skip, 4096), facts, codecs)
            at += size
    if "scale" not in facts and not codecs:
        raise damaged("it has no movie header")
    # Of a film in fragments the movie's header states 0, and its extension the whole where that was known.
    facts["duration"] = (
        _seconds(facts["duration"] / scale) if (scale := facts.pop("scale", 0)) and facts["duration"] else None
    )
    return _facts("video" if "size" in facts else "sound", {**facts, "codecs": ", ".join(dict.fromkeys(codecs))})


def _box(name: bytes, file: BinaryIO, at: int, size: int, facts: dict[str, Any], codecs: list[str]) -> None:
    file.seek(at)
    body = file.read(size) if name in _READ else b""
    try:
        if name == b"mvhd":
            form, place = (">IQ", 20) if body[0] == 1 else (">II", 12)
            facts["scale"], duration = struct.unpack_from(form, body, place)
            facts["duration"] = duration or facts["duration"]
        elif name == b"mehd":
            facts["duration"] = facts["duration"] or struct.unpack_from(">Q" if body[0] == 1 else ">I", body, 4)[0]
        elif name == b"tkhd":
            width, height = struct.unpack_from(">II", body, 88 if body[0] == 1 else 76)
            if width and height:
                facts["size"] = f"{width >> 16} x {height >> 16}"
        elif name == b"stsd":
            codecs.append(body[12:16].decode("ascii", "replace").strip())
    except (struct.error, IndexError):
        return


def avi(file: BinaryIO, request: Request) -> Document:
    """An AVI file: the chunks of its header list."""
    if request.wants_image:
        no_image("video")
    facts: dict[str, Any] = {}
    codecs: list[str] = []
    at, stream = 12, b""
    for _ in range(_MAX_BOXES):
        file.seek(at)
        head = file.read(8)
        if len(head) < 8:
            break
        name, size = struct.unpack("<4sI", head)
        if name == b"LIST":
            # The lists lie in one another, and the first of the media itself ends the header.
            if file.read(4) == b"movi":
                break
            at += 12
            continue
        body = file.read(min(size, 64))
        if name == b"avih" and len(body) >= 40:
            frame_us, frames, width, height = (struct.unpack_from("<I", body, place)[0] for place in (0, 16, 32, 36))
            facts = {"duration": _seconds(frame_us * frames / 1e6), "size": f"{width} x {height}"}
        elif name == b"strh":
            stream = body[:4]
            codecs += [body[4:8].decode("ascii", "replace").strip()] if stream == b"vids" else []
        elif name == b"strf" and stream == b"auds" and len(body) >= 2:
            number = struct.unpack_from("<H", body)[0]
            codecs.append(_WAVE_CODECS.get(number, f"0x{number:04x}"))
        at += 8 + size + size % 2
    if not facts:
        raise damaged("it has no header")
    return _facts("video", {**facts, "codecs": ", ".join(dict.fromkeys(codecs))})


def matroska(file: BinaryIO, request: Request) -> Document:
    """A Matroska or WebM file: its headers up to the first cluster."""
    if request.wants_image:
        no_image("video")
    facts: dict[str, Any] = {}
    codecs: list[str] = []
    scale, duration, width, height = 1_000_000, None, None, None
    end = file.seek(0, 2)
    file.seek(0)
    for _ in range(_MAX_BOXES):
        at = file.tell()
        name, size = _number(file, keep_marker=True), _number(file)
        if name is None or size is None or name == _CLUSTER or at >= end:
            break
        if name in _EBML_INSIDE:
            continue
        body = file.read(min(size, 4096)) if name in (_SCALE, _DURATION, _CODEC, _WIDTH, _HEIGHT, _TITLE) else b""
        file.seek(file.tell() - len(body) + size)
        match name:
            case 0x2AD7B1:
                scale = int.from_bytes(body) or scale
            case 0x4489 if len(body) in (4, 8):
                duration = struct.unpack(">f" if len(body) == 4 else ">d", body)[0]
            case 0x86:
                codecs.append(body.decode("ascii", "replace"))
            case 0xB0:
                width = int.from_bytes(body)
            case 0xBA:
                height = int.from_bytes(body)
            case 0x7BA9:
                facts["title"] = body.decode("utf-8", "replace")
    facts["duration"] = _seconds(None if duration is None else duration * scale / 1e9)
    facts["size"] = f"{width} x {height}" if width and height else None
    if not codecs:
        raise damaged("it has no tracks before its media")
    return _facts("video" if facts["size"] else "sound", {**facts, "codecs": ", ".join(dict.fromkeys(codecs))})


def _number(file: BinaryIO, *, keep_marker: bool = False) -> int | None:
    """A variable-length number of EBML (RFC 8794, section 4)."""
    first = file.read(1)
    if not first or not first[0]:
        return None
    length = 9 - first[0].bit_length()
    rest = file.read(length - 1)
    value = int.from_bytes(first + rest)
    return value if keep_marker else value & ((1 << 7 * length) - 1)
