"""Fonts in documents that loop, lie or never end: a clear error or a bounded answer, and the service goes on."""

import itertools
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from support.documents import pdf_of, word
from support.road import Road

pytestmark = pytest.mark.anyio
DEJAVU = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")
PAGE = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>"
TEXT = b"BT /F1 24 Tf 72 700 Td (Aa) Tj ET"


def stream(content: bytes, entries: bytes = b"") -> bytes:
    packed = zlib.compress(content)
    return b"<< /Length %d /Filter /FlateDecode %s >>\nstream\n%s\nendstream" % (len(packed), entries, packed)


def with_font(*objects: bytes) -> bytes:
    """A page with two letters in the font that object 5 is."""
    head = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>", PAGE, stream(TEXT)]
    return pdf_of([*head, *objects, b"<< >>"])


def embedded(font: bytes, kind: bytes = b"FontFile2", subtype: bytes = b"TrueType") -> bytes:
    return with_font(
        b"<< /Type /Font /Subtype /%s /BaseFont /Own /FirstChar 0 /LastChar 1 /Widths [500 500] /FontDescriptor 6 0 R >>"
        % subtype,
        b"<< /Type /FontDescriptor /FontName /Own /Flags 4 /FontBBox [0 0 1000 1000] /ItalicAngle 0 /Ascent 800 "
        b"/Descent -200 /CapHeight 700 /StemV 80 /%s 7 0 R >>" % kind,
        stream(font, b"/Length1 %d" % len(font)),
    )


def own_parts() -> bytes:
    """A TrueType font in which every composed glyph is composed of itself."""
    if not DEJAVU.exists():
        pytest.skip("not installed: DejaVuSans.ttf (Debian: fonts-dejavu-core)")
    font = bytearray(DEJAVU.read_bytes())
    tables = {
        bytes(font[at : at + 4]): struct.unpack_from(">II", font, at + 8)
        for at in range(12, 12 + 16 * struct.unpack_from(">H", font, 4)[0], 16)
    }
    glyphs, (loca, size) = tables[b"glyf"][0], tables[b"loca"]
    is_long = struct.unpack_from(">h", font, tables[b"head"][0] + 50)[0]
    count = size // (4 if is_long else 2)
    starts = [at * (1 if is_long else 2) for at in struct.unpack_from(f">{count}{'I' if is_long else 'H'}", font, loca)]
    for number, (start, end) in enumerate(itertools.pairwise(starts)):
        if end > start and struct.unpack_from(">h", font, glyphs + start)[0] < 0:
            struct.pack_into(">H", font, glyphs + start + 12, number)
    return embedded(bytes(font))


def own_text() -> bytes:
    """A Type 3 font whose glyph writes itself, twice."""
    glyph = stream(b"1000 0 d0 BT /F1 1 Tf (AaAa) Tj ET")
    return with_font(
        b"<< /Type /Font /Subtype /Type3 /FontBBox [0 0 1000 1000] /FontMatrix [0.001 0 0 0.001 0 0] /FirstChar 65 /LastChar 97 "
        b"/CharProcs << /g 6 0 R >> /Encoding << /Type /Encoding /Differences [65 /g 97 /g] >> "
        b"/Widths [%s] /Resources << /Font << /F1 5 0 R >> >> >>" % b" ".join([b"1000"] * 33),
        glyph,
    )


def endless_map() -> bytes:
    """A table of characters whose ranges name four thousand million of them, many times."""
    ranges = b"100 beginbfrange\n" + b"<00000000> <FFFFFFFF> <0041>\n" * 100 + b"endbfrange\n"
    table = b"/CIDInit /ProcSet findresource begin begincmap\n" + ranges * 300 + b"endcmap end\n"
    return with_font(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R >>", stream(table))


def endless_widths() -> bytes:
    return with_font(
        b"<< /Type /Font /Subtype /Type0 /BaseFont /Own /Encoding /Identity-H /DescendantFonts [6 0 R] >>",
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Own /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) "
        b"/Supplement 0 >> /W [%s] /DW 1000 >>" % (b"0 2147483647 500 " * 10_000),
    )


def endless_program() -> bytes:
    """A Type 1 font whose subroutine calls itself."""
    body = b"%!PS-AdobeFont-1.0: Own\n/FontMatrix [0.001 0 0 0.001 0 0] def { dup exec } dup exec\n" * 2000
    return embedded(body, b"FontFile", b"Type1")


FONTS: dict[str, Callable[[], bytes]] = {
    "composed-of-itself": own_parts,
    "writes-itself": own_text,
    "endless-map": endless_map,
    "endless-widths": endless_widths,
    "endless-program": endless_program,
    "no-font": lambda: embedded(b"\x00\x01\x00\x00" + b"\xff" * 5000),
    "huge-font": lambda: embedded(bytes(300 << 20)),
}


@pytest.mark.parametrize("trick", FONTS)
async def test_a_font_that_loops_or_never_ends_costs_an_error_or_a_bounded_answer(trick: str, road: Road) -> None:
    (road.root / "a.pdf").write_bytes(FONTS[trick]())
    for encoding in ("auto", "image"):
        answer = await road.call("file.read", "a.pdf", options={"encoding": encoding})
        if answer["ok"]:
            assert len(answer["data"]["content"]) < 5000
        else:
            assert answer["error"]["code"] in ("execution_failed", "limit_exceeded", "timeout"), answer["error"]
            assert answer["error"]["message"].endswith(".") and "Traceback" not in answer["error"]["message"]
    assert [path.name for path in road.root.iterdir()] == ["a.pdf"]
    (road.root / "good.docx").write_bytes(word("still here"))
    assert (await road.data("file.read", "good.docx"))["content"] == "still here\n"
