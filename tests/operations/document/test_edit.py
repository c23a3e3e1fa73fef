"""document.edit: one change, every other part unchanged byte for byte, undoable, and LibreOffice opens the result."""

import io
import warnings
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.documents import by_libreoffice, excel, package, pdf, row, word
from support.road import Road
from support.service import Http, serving
from support.session import McpRoad

pytestmark = pytest.mark.anyio


def members(content: bytes) -> dict[str, tuple[bytes, bytes]]:
    """Each part of a package: its compressed bytes with their header, and its content."""
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        assert opened.testzip() is None
        found = {}
        for info in opened.infolist():
            at = info.header_offset
            skip = 30 + sum(int.from_bytes(content[at + place : at + place + 2], "little") for place in (26, 28))
            found[info.filename] = content[at : at + skip + info.compress_size], opened.read(info)
        return found


def changed_parts(old: bytes, new: bytes) -> list[str]:
    """The parts whose stored bytes differ; both packages have the same parts in the same order."""
    before, after = members(old), members(new)
    assert list(before) == list(after)
    return [name for name in before if before[name][0] != after[name][0]]


async def edited(road: Road, name: str, content: bytes, **input: Any) -> bytes:
    """Edit a file, prove that undo restores it, edit it again, and give the new content."""
    path = road.root / name
    path.write_bytes(content)
    envelope = await road.call("document.edit", name, input=input)
    assert envelope["ok"], envelope
    assert envelope["effect"] == "confirmed"
    new = path.read_bytes()
    await road.data("file.undo", input={"operationId": envelope["operationId"]})
    assert path.read_bytes() == content
    await road.data("document.edit", name, input=input)
    assert path.read_bytes() == new
    return new


async def test_a_cell_is_set_and_nothing_else_changes(road: Road, tmp_path: Path) -> None:
    old = excel(row(1, "Name", "Count") + row(3, "pears", 7), more={"docProps/app.xml": "<Properties/>"})
    cells = [
        {"range": "B3", "values": 12.5},
        {"range": "A2:B2", "values": [["apples & <nuts>", 3]]},
        {"sheet": "Sales", "range": "D5", "values": True},
    ]
    new = await edited(road, "a.xlsx", old, cells=cells)
    assert changed_parts(old, new) == ["xl/worksheets/sheet1.xml"]
    found = await road.data("file.read", "a.xlsx")
    assert found["content"].splitlines()[2:] == [
        "1\tName\tCount", "2\tapples & <nuts>\t3", "3\tpears\t12.5", "5\t\t\t\tTRUE",
    ]  # fmt: skip
    assert by_libreoffice(road.root / "a.xlsx", "csv", tmp_path).splitlines() == [
        "Name,Count,,", "apples & <nuts>,3,,", "pears,12.5,,", ",,,", ",,,TRUE",
    ]  # fmt: skip


async def test_a_new_formula_is_calculated_and_the_others_are_marked_for_it(road: Road, tmp_path: Path) -> None:
    old = excel(row(1, 2, 3) + '<row r="2"><c r="A2"><f>A1+B1</f><v>5</v></c></row>')
    new = await edited(road, "a.xlsx", old, cells=[{"range": "A1", "values": 40}, {"range": "B2", "values": "=A1*2"}])
    assert changed_parts(old, new) == ["xl/workbook.xml", "xl/worksheets/sheet1.xml"]
    assert b'fullCalcOnLoad="1"' in members(new)["xl/workbook.xml"][1]
    assert by_libreoffice(road.root / "a.xlsx", "csv", tmp_path).splitlines()[1].endswith(",80")


async def test_a_formula_that_fills_other_cells_is_not_replaced(road: Road) -> None:
    shared = '<row r="1"><c r="A1"><f t="shared" ref="A1:A2" si="0">1+1</f><v>2</v></c></row>'
    (road.root / "a.xlsx").write_bytes(content := excel(shared))
    assert (
        await road.code("document.edit", "a.xlsx", input={"cells": [{"range": "A1", "values": 1}]}) == "invalid_request"
    )
    assert (road.root / "a.xlsx").read_bytes() == content


async def test_a_text_is_replaced_across_runs_and_keeps_its_formatting(road: Road, tmp_path: Path) -> None:
    split = (
        "<w:p><w:r><w:rPr><w:b/></w:rPr><w:t>Meeting on 5 </w:t></w:r><w:r><w:t>May</w:t></w:r>"
        '<w:r><w:t xml:space="preserve"> at noon</w:t></w:r></w:p>'
    )
    old = word("First &amp; foremost", raw=split)
    new = await edited(road, "a.docx", old, texts=[{"oldText": "5 May", "newText": "12 June <sharp>"}])
    assert changed_parts(old, new) == ["word/document.xml"]
    body = members(new)["word/document.xml"][1]
    assert b"<w:rPr><w:b/></w:rPr><w:t>Meeting on 12 June &lt;sharp&gt;</w:t>" in body and b"<w:t></w:t>" in body
    assert body.startswith(members(old)["word/document.xml"][1][:150])
    text = by_libreoffice(road.root / "a.docx", "txt:Text (encoded):UTF8", tmp_path)
    assert text.lstrip("\ufeff").splitlines()[:2] == ["First & foremost", "Meeting on 12 June <sharp> at noon"]


async def test_an_opendocument_text_is_edited(road: Road, tmp_path: Path) -> None:
    names = (
        'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
        'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" office:version="1.2"'
    )
    kind = "application/vnd.oasis.opendocument.text"
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
        '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>'
    )
    body = f"<office:document-content {names}><office:body><office:text><text:p>Dear <text:span>Ann</text:span>, hello</text:p></office:text></office:body></office:document-content>"
    old = package({"mimetype": kind, "content.xml": body, "META-INF/manifest.xml": manifest})
    new = await edited(road, "a.odt", old, texts=[{"oldText": "Ann", "newText": "Bo  and Cy"}])
    assert changed_parts(old, new) == ["content.xml"]
    text = by_libreoffice(road.root / "a.odt", "txt:Text (encoded):UTF8", tmp_path)
    assert text.lstrip("\ufeff").strip() == "Dear Bo  and Cy, hello"


async def test_a_text_that_is_not_there_or_there_twice_changes_nothing(road: Road) -> None:
    (road.root / "a.docx").write_bytes(content := word("one one", "two"))
    for texts, code in (
        ([{"oldText": "two", "newText": "2"}, {"oldText": "three", "newText": "3"}], "not_found"),
        ([{"oldText": "one", "newText": "1"}], "invalid_request"),
        ([{"oldText": "two", "newText": "a\nb"}], "invalid_request"),
    ):
        assert await road.code("document.edit", "a.docx", input={"texts": texts}) == code
    assert (
        await road.code("document.edit", "a.docx", input={"cells": [{"range": "A1", "values": 1}]}) == "invalid_request"
    )
    assert (road.root / "a.docx").read_bytes() == content
    await road.data(
        "document.edit", "a.docx", input={"texts": [{"oldText": "one", "newText": "1", "replaceAll": True}]}
    )
    assert (await road.data("file.read", "a.docx"))["content"] == "1 1\ntwo\n"


def form() -> bytes:
    """A PDF form with one text field, made by pypdf's generic objects."""
    pypdf = pytest.importorskip("pypdf")
    from pypdf.generic import ArrayObject, DictionaryObject, FloatObject, NameObject, NumberObject, TextStringObject

    writer = pypdf.PdfWriter()
    page = writer.add_blank_page(300, 200)
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    field = DictionaryObject({
        NameObject("/Type"): NameObject("/Annot"), NameObject("/Subtype"): NameObject("/Widget"), NameObject("/FT"): NameObject("/Tx"),
        NameObject("/T"): TextStringObject("name"), NameObject("/F"): NumberObject(4), NameObject("/DA"): TextStringObject("/Helv 12 Tf 0 g"),
        NameObject("/Rect"): ArrayObject([FloatObject(50), FloatObject(100), FloatObject(250), FloatObject(130)]),
    })  # fmt: skip
    held = writer._add_object(field)
    page[NameObject("/Annots")] = ArrayObject([held])
    writer._root_object[NameObject("/AcroForm")] = DictionaryObject({
        NameObject("/Fields"): ArrayObject([held]), NameObject("/DA"): TextStringObject("/Helv 12 Tf 0 g"),
        NameObject("/DR"): DictionaryObject({NameObject("/Font"): DictionaryObject({NameObject("/Helv"): font})}),
    })  # fmt: skip
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


async def test_a_form_field_of_a_pdf_is_set_by_an_addition_at_its_end(road: Road) -> None:
    pypdf = pytest.importorskip("pypdf")
    old = form()
    new = await edited(road, "a.pdf", old, fields={"name": "Ada Lovelace"})
    assert new.startswith(old)
    assert pypdf.PdfReader(io.BytesIO(new)).get_form_text_fields() == {"name": "Ada Lovelace"}
    assert await road.code("document.edit", "a.pdf", input={"fields": {"other": "x"}}) == "not_found"
    assert (road.root / "a.pdf").read_bytes() == new


async def test_a_dry_run_and_another_digest_change_nothing(road: Road) -> None:
    (road.root / "a.docx").write_bytes(content := word("one"))
    input = {"texts": [{"oldText": "one", "newText": "two"}]}
    answer = await road.data("document.edit", "a.docx", input=input, options={"dryRun": True})
    assert answer["changes"] == 1 and (road.root / "a.docx").read_bytes() == content
    assert await road.code("document.edit", "a.docx", input=input, options={"ifSha256": "0" * 64}) == "conflict"
    assert (road.root / "a.docx").read_bytes() == content


async def test_a_client_over_http_reads_edits_and_sees_a_document(tmp_path: Path) -> None:
    """A running service and its MCP tools: text, a picture beside the answer, and an edit that undo takes back."""
    with serving(tmp_path) as running, closing(Http(running.port)) as http:
        (tmp_path / "root" / "a.docx").write_bytes(word("Meeting on 5 May"))
        (tmp_path / "root" / "a.pdf").write_bytes(pdf("A page"))
        client = McpRoad(http)
        texts = [{"oldText": "5 May", "newText": "12 May"}]
        assert (await client.data("document.edit", "a.docx", scope="app", input={"texts": texts}))["changes"] == 1
        assert (await client.data("file.read", "a.docx", scope="app"))["content"] == "Meeting on 12 May\n"
        shown = await client.data("file.read", "a.pdf", scope="app", options={"encoding": "image"})
        assert shown["document"]["count"] == 1 and [image["mimeType"] for image in client.images] == ["image/png"]
        await client.data("file.undo", scope="app", input={"operationId": "last"})
        assert (await client.data("file.read", "a.docx", scope="app"))["content"] == "Meeting on 5 May\n"


async def test_a_package_with_two_parts_of_one_name_is_not_edited(road: Road) -> None:
    """Found: both were replaced by the edited one, though an application may have shown the other."""
    place = road.root / "twice.docx"
    place.write_bytes(word("Pay 5 EUR"))
    with warnings.catch_warnings(), zipfile.ZipFile(place, "a") as opened:
        warnings.simplefilter("ignore")
        opened.writestr("word/document.xml", opened.read("word/document.xml").replace(b"Pay", b"Get"))
    before = place.read_bytes()
    edit = {"texts": [{"oldText": "5 EUR", "newText": "7 EUR"}]}
    assert await road.code("document.edit", "twice.docx", input=edit) == "invalid_request"
    assert place.read_bytes() == before
