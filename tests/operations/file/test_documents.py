"""file.read of documents: what a person would see, by page, sheet, range and member, decoded in the sandbox."""

import base64
import gzip
import io
import json
import os
import tarfile
import wave
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from computer_linker.computer.base import Computer
from computer_linker.errors import ProviderUnavailable
from computer_linker.model.scope import ScopePolicy
from computer_linker.providers.documents.decoder import Decoder
from computer_linker.providers.sandbox.sandbox import Sandbox
from computer_linker.registry import shapes
from computer_linker.registry.text import render
from support.documents import excel, office, package, pdf, relations, row, word
from support.road import LOCAL, Road, folder_scope

pytestmark = pytest.mark.anyio
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def shown(road: Road, name: str, content: bytes, **options: Any) -> dict[str, Any]:
    """What file.read answers for a file with this content."""
    (road.root / name).write_bytes(content)
    return await road.data("file.read", name, options=options)


async def refused(road: Road, name: str, content: bytes, **options: Any) -> dict[str, Any]:
    (road.root / name).write_bytes(content)
    envelope = await road.call("file.read", name, options=options)
    assert not envelope["ok"], envelope
    error: dict[str, Any] = envelope["error"]
    return error


async def pictures(road: Road, name: str, **options: Any) -> list[tuple[str, bytes]]:
    """The image blocks beside the answer."""
    reply = await road.app.dispatcher.call_wire(
        {"scope": "app", "op": "file.read", "target": name, "options": options}, LOCAL
    )
    assert reply.envelope["ok"], reply.envelope
    return [(one.mime, one.data) for one in reply.attachments]


async def test_a_pdf_is_read_by_page_and_says_where_to_read_on(road: Road) -> None:
    content = pdf("First page", "Second page", "Third page", title="Report")
    whole = await shown(road, "a.pdf", content)
    assert whole["content"] == "--- page 1 ---\nFirst page\n--- page 2 ---\nSecond page\n--- page 3 ---\nThird page\n"
    facts = whole["document"]
    assert (facts["kind"], facts["unit"], facts["count"], facts["title"]) == ("PDF", "page", 3, "Report")
    assert facts["boundary"].startswith("bubblewrap") and whole["truncated"] is False
    first = await shown(road, "a.pdf", content, maxBytes=40)
    assert first["content"] == "--- page 1 ---\nFirst page\n" and first["document"]["next"] == {"page": 2}
    then = await shown(road, "a.pdf", content, **first["document"]["next"])
    assert then["content"].startswith("--- page 2 ---\nSecond page\n") and then["document"]["last"] == 3
    assert (await refused(road, "a.pdf", content, page=4))["code"] == "invalid_request"


async def test_a_page_of_a_pdf_is_shown_as_a_picture(road: Road) -> None:
    (road.root / "a.pdf").write_bytes(pdf("First", "Second"))
    ((mime, data),) = await pictures(road, "a.pdf", encoding="image", page=2)
    assert mime == "image/png" and data.startswith(b"\x89PNG")


async def test_a_word_document_is_lines_with_headings_and_tables(road: Road) -> None:
    table = "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    heading = '<w:p><w:pPr><w:pStyle w:val="Heading2"/></w:pPr><w:r><w:t>Part</w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>'
    found = await shown(road, "a.docx", word("Hello", "World", raw=heading + table))
    assert found["content"] == "Hello\nWorld\n## Part\n| a | b |\n"
    two = await shown(road, "a.docx", word(*(f"line {number}" for number in range(100))), startLine=99)
    assert (two["content"], two["startLine"], two["truncated"]) == ("line 98\nline 99\n", 99, False)
    cut = await shown(road, "a.docx", word(*(f"line {number}" for number in range(100))), maxBytes=20)
    assert cut["nextLine"] == 3 and cut["document"]["next"] == {"startLine": 3}


async def test_a_range_of_a_sheet_is_read_with_its_row_numbers(road: Road) -> None:
    rows = "".join(row(number, f"name {number}", number / 2) for number in range(1, 500))
    found = await shown(road, "a.xlsx", excel(rows), sheet="Sales", range="A300:B301")
    assert found["content"] == "--- sheet 1 Sales ---\n\tA\tB\n300\tname 300\t150.0\n301\tname 301\t150.5\n"
    cut = await shown(road, "a.xlsx", excel(rows), maxBytes=100)
    last = cut["document"]["range"]
    assert cut["truncated"] and cut["document"]["sheets"] == ["Sales"]
    assert cut["document"]["next"]["range"].startswith("A") and last.startswith("A1:B")
    error = await refused(road, "a.xlsx", excel(rows), sheet="Costs")
    assert error["code"] == "invalid_request" and "Sales" in error["message"]


async def test_dates_shared_texts_and_formulas_of_a_sheet_are_what_a_person_sees(road: Road) -> None:
    names = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    more: dict[str, str | bytes] = {
        "xl/sharedStrings.xml": f'<sst xmlns="{names}"><si><t>zero</t></si><si><r><t>rich </t></r><r><t>text</t></r></si></sst>',
        "xl/styles.xml": f'<styleSheet xmlns="{names}"><numFmts><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/></numFmts>'
        '<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="14"/></cellXfs></styleSheet>',
    }
    cells = (
        '<row r="1"><c r="A1" t="s"><v>1</v></c><c r="B1" s="1"><v>45322</v></c><c r="C1" s="2"><v>45322.5</v></c>'
        '<c r="D1"><f>1+1</f><v>2</v></c><c r="E1"><f>A1</f></c><c r="F1" t="b"><v>1</v></c><c r="G1" t="e"><v>#DIV/0!</v></c></row>'
    )
    found = await shown(road, "a.xlsx", excel(cells, more=more))
    line = found["content"].splitlines()[2]
    assert line == "1\trich text\t2024-01-31\t2024-01-31 12:00:00\t2\t=A1\tTRUE\t#DIV/0!"


async def test_a_presentation_is_read_by_slide(road: Road) -> None:
    a, p = (
        "http://schemas.openxmlformats.org/drawingml/2006/main",
        "http://schemas.openxmlformats.org/presentationml/2006/main",
    )
    r = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"

    def slide(text: str) -> str:
        return (
            f'<p:sld xmlns:p="{p}" xmlns:a="{a}"><p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sld>'
        )

    main = f'<p:presentation xmlns:p="{p}" xmlns:r="{r}"><p:sldIdLst><p:sldId id="256" r:id="rId2"/><p:sldId id="257" r:id="rId1"/></p:sldIdLst></p:presentation>'
    content = office("ppt/presentation.xml", "presentationml.presentation", {
        "ppt/presentation.xml": main,
        "ppt/_rels/presentation.xml.rels": relations({"rId1": ("slide", "slides/s1.xml"), "rId2": ("slide", "slides/s2.xml")}),
        "ppt/slides/s1.xml": slide("shown second"), "ppt/slides/s2.xml": slide("shown first"),
    })  # fmt: skip
    found = await shown(road, "a.pptx", content)
    assert found["content"] == "--- slide 1 ---\nshown first\n--- slide 2 ---\nshown second\n"


async def test_a_book_is_read_by_chapter(road: Road) -> None:
    content = package({
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OEBPS/b.opf"/></rootfiles></container>',
        "OEBPS/b.opf": '<package><metadata><title>Tales</title></metadata><manifest><item id="a" href="one.xhtml"/>'
        '<item id="b" href="two.xhtml"/></manifest><spine><itemref idref="b"/><itemref idref="a"/></spine></package>',
        "OEBPS/one.xhtml": "<html><head><style>p{}</style></head><body><p>last&nbsp;words</p></body></html>",
        "OEBPS/two.xhtml": "<html><body><h1>Start</h1><script>alert(1)</script></body></html>",
    })  # fmt: skip
    found = await shown(road, "a.epub", content)
    assert found["content"] == "--- chapter 1 ---\n# Start\n--- chapter 2 ---\nlast words\n"
    assert found["document"]["title"] == "Tales"


async def test_an_email_lists_its_attachments_and_gives_one(road: Road) -> None:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "a@example.org", "b@example.org", "Grüße"
    message.set_content("Please see the attachment.")
    message.add_attachment(
        word("inside the letter"), maintype="application", subtype="octet-stream", filename="letter.docx"
    )
    found = await shown(road, "a.eml", message.as_bytes(), encoding="document")
    assert "Subject: Grüße" in found["content"] and "Attachment: letter.docx" in found["content"]
    inner = await shown(road, "a.eml", message.as_bytes(), member="letter.docx")
    assert inner["content"] == "inside the letter\n" and inner["document"]["member"] == "letter.docx"
    assert (await refused(road, "a.eml", message.as_bytes(), member="other"))["code"] == "not_found"


async def test_a_notebook_is_cells_with_their_outputs(road: Road) -> None:
    picture = base64.b64encode(PNG).decode()
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {"cell_type": "code", "source": "1/0", "outputs": [
            {"output_type": "stream", "text": ["out\n"]}, {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "by zero"},
            {"output_type": "display_data", "data": {"image/png": picture}}]},
    ]  # fmt: skip
    content = json.dumps({"cells": cells, "nbformat": 4}).encode()
    found = await shown(road, "a.ipynb", content, encoding="document")
    assert found["content"] == (
        "--- cell 1 markdown ---\n# Title\ntext\n--- cell 2 code ---\n1/0\noutput: out\nerror: ZeroDivisionError: by zero\n"
        "output: a picture; read it with `member` `2-3.png`\n"
    )
    assert await pictures(road, "a.ipynb", member="2-3.png") == [("image/png", PNG)]
    assert (await shown(road, "a.ipynb", content))["content"].startswith('{"cells"')


async def test_a_csv_is_a_bounded_table_with_types_on_request(road: Road) -> None:
    content = b"id;name;when;share\n" + b"".join(
        b"%d;n%d;2024-01-%02d;0.5\n" % (n, n, n % 28 + 1) for n in range(1, 2000)
    )
    found = await shown(road, "a.csv", content, encoding="document", range="A1500:B1501")
    assert found["content"] == "\tid (integer)\tname (text)\n1500\t1500\tn1500\n1501\t1501\tn1501\n"
    assert found["document"]["columns"] == 4 and found["document"]["next"] == {"range": "1502:1601"}
    assert "document" not in await shown(road, "a.csv", content)


async def test_a_parquet_file_is_a_table_with_its_types(road: Road, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    files = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"id": list(range(5000)), "name": [f"n{n}" for n in range(5000)]})
    files.write_table(table, tmp_path / "a.parquet", row_group_size=1000)
    found = await shown(road, "a.parquet", (tmp_path / "a.parquet").read_bytes(), range="4000:4001")
    assert found["content"] == "\tid (int64)\tname (string)\n4000\t3999\tn3999\n4001\t4000\tn4000\n"
    assert found["document"]["rows"] == 5000


def tar(members: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            made.addfile(info, io.BytesIO(content))
        for name, to in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, to
            made.addfile(info)
    return out.getvalue()


async def test_an_archive_is_a_listing_and_one_member(road: Road) -> None:
    for name, content in (
        ("a.tar.gz", gzip.compress(tar({"a.txt": b"one\n", "b.docx": word("two")}))),
        ("a.zip", package({"a.txt": "one\n", "b.docx": word("two")})),
    ):
        listed = await shown(road, name, content)
        assert listed["content"].splitlines()[0] == "a.txt\t4" and listed["document"]["members"] == 2
        assert (await shown(road, name, content, member="a.txt"))["content"] == "one\n"
        assert (await shown(road, name, content, member="b.docx"))["content"] == "two\n"
        assert (await refused(road, name, content, member="c"))["code"] == "not_found"


async def test_names_and_links_in_an_archive_lead_nowhere(road: Road) -> None:
    content = tar({"../../up.txt": b"up\n", "/abs.txt": b"abs\n"}, {"passwd": "/etc/passwd"})
    listed = await shown(road, "a.tar", content)
    assert "passwd\tlink to /etc/passwd" in listed["content"]
    assert (await shown(road, "a.tar", content, member="../../up.txt"))["content"] == "up\n"
    assert (await refused(road, "a.tar", content, member="passwd"))["code"] == "invalid_request"
    assert sorted(path.name for path in road.root.iterdir()) == ["a.tar"]


async def test_sound_and_video_are_facts(road: Road) -> None:
    out = io.BytesIO()
    with wave.open(out, "wb") as made:
        made.setnchannels(2)
        made.setsampwidth(2)
        made.setframerate(8000)
        made.writeframes(bytes(4 * 8000))
    found = await shown(road, "a.wav", out.getvalue())
    assert found["content"].startswith("duration: 1.00 s\nchannels: 2\n") and found["document"]["kind"] == "sound"


async def test_a_large_picture_is_made_to_fit_and_a_small_one_sent_as_it_is(road: Road) -> None:
    image = pytest.importorskip("PIL.Image")
    out = io.BytesIO()
    image.effect_noise((3000, 2000), 50).save(out, "TIFF")
    (road.root / "a.tif").write_bytes(out.getvalue())
    (road.root / "a.png").write_bytes(PNG)
    ((mime, data),) = await pictures(road, "a.tif", encoding="image")
    assert mime in ("image/png", "image/jpeg") and image.open(io.BytesIO(data)).size == (1568, 1045)
    assert await pictures(road, "a.png", encoding="image") == [("image/png", PNG)]


async def test_a_drawing_is_rasterised_on_request(road: Road) -> None:
    pytest.importorskip("resvg_py")
    image = pytest.importorskip("PIL.Image")
    (road.root / "a.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><rect width="40" height="20" fill="#f00"/></svg>'
    )
    ((mime, data),) = await pictures(road, "a.svg", encoding="image")
    opened = image.open(io.BytesIO(data)).convert("RGB")
    assert mime == "image/png" and opened.size == (40, 20) and opened.getpixel((5, 5)) == (255, 0, 0)


async def test_a_scanned_page_is_read_by_ocr(road: Road) -> None:
    image = pytest.importorskip("PIL.Image")
    from PIL import ImageDraw, ImageFont

    page = image.new("RGB", (1240, 600), "white")
    ImageDraw.Draw(page).text((80, 200), "INVOICE 4711", font=ImageFont.load_default(size=120), fill="black")
    page.save(road.root / "scan.pdf", "PDF", resolution=150)
    found = await road.data("file.read", "scan.pdf")
    if "byOcr" not in found["document"]:
        pytest.skip("not installed: an OCR engine")
    assert found["document"]["byOcr"] == [1] and "4711" in found["content"]


async def test_plain_text_stays_as_it_is_whatever_it_begins_with(road: Road) -> None:
    for text in ("FORM 1 of 2\n", "ID3 tags\n", "BM\n", "BZh is a magic number\n", "GIF89a\n", "<svg/>\n"):
        found = await shown(road, "a.txt", text.encode())
        assert found["content"] == text and "document" not in found


async def test_a_model_reads_where_it_is_in_the_document_and_how_to_read_on(road: Road) -> None:
    (road.root / "a.pdf").write_bytes(pdf("First", "Second", title="Report"))
    data = await road.data("file.read", "a.pdf", options={"maxBytes": 30})
    text = render(data, shapes.PAGE, "a.pdf")
    assert text.splitlines()[0] == f'a.pdf, {data["size"]} bytes, PDF "Report", 2 pages, page 1, goes on: page 2:'
    assert text.splitlines()[1:] == ["--- page 1 ---", "First"]


async def test_where_no_boundary_can_be_had_a_scope_that_requires_one_decodes_nothing(road: Road) -> None:
    """The decoder of a machine without any boundary, and that of a scope that wants none."""
    (road.root / "a.pdf").write_bytes(pdf("First"))
    computer = road.app.services.use(Computer)
    decoder = Decoder(computer, Sandbox(computer, road.home, kinds=()))
    order = {"action": "read", "kind": "pdf"}
    fd = os.open(road.root / "a.pdf", os.O_RDONLY)
    try:
        with pytest.raises(ProviderUnavailable, match="requires a sandbox"):
            await decoder.run(fd, order, ScopePolicy(sandbox="required"))
        found = await decoder.run(fd, order, ScopePolicy(sandbox="auto"))
    finally:
        os.close(fd)
    assert found.boundary == "none" and "First" in found.facts["content"]


async def test_a_scope_without_a_sandbox_is_warned(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", sandbox="off")]) as road:
        (road.root / "a.pdf").write_bytes(pdf("First"))
        envelope = await road.call("file.read", "a.pdf")
    assert envelope["ok"], envelope["error"]
    assert envelope["data"]["document"]["boundary"] == "none" and "kernel boundary" in envelope["warnings"][0]


async def test_a_changed_file_is_decoded_anew(road: Road) -> None:
    assert "First" in (await shown(road, "a.pdf", pdf("First")))["content"]
    assert "Other" in (await shown(road, "a.pdf", pdf("Other")))["content"]
    os.utime(road.root / "a.pdf", ns=(1, 1))
    assert "Other" in (await road.data("file.read", "a.pdf"))["content"]
