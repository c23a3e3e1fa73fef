"""Small documents made for tests, and LibreOffice and poppler as the judges of ours."""

import io
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from support.node import locked

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_P = "http://schemas.openxmlformats.org/presentationml/2006/main"
_A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPE = "application/vnd.openxmlformats-officedocument"


def package(parts: dict[str, str | bytes]) -> bytes:
    """A ZIP package of these parts."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in parts.items():
            made.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def office(main: str, kind: str, parts: dict[str, str | bytes], overrides: dict[str, str] | None = None) -> bytes:
    """An Office package with its content types and relations."""
    types = {f"/{main}": f"{_TYPE}.{kind}.main+xml", **(overrides or {})}
    listed = "".join(f'<Override PartName="{name}" ContentType="{stated}"/>' for name, stated in types.items())
    head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
    return package({
        "[Content_Types].xml": f'{head}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{listed}</Types>',
        "_rels/.rels": relations({"rId1": ("officeDocument", main)}),
        **parts,
    })  # fmt: skip


def relations(found: dict[str, tuple[str, str]]) -> str:
    inner = "".join(f'<Relationship Id="{key}" Type="{_R}/{kind}" Target="{to}"/>' for key, (kind, to) in found.items())
    return f'<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{inner}</Relationships>'


def word(*paragraphs: str, raw: str = "") -> bytes:
    """A Word document; each paragraph is one run, and `raw` is put after them as XML."""
    body = "".join(f'<w:p><w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>' for text in paragraphs)
    return office(
        "word/document.xml",
        "wordprocessingml.document",
        {
            "word/document.xml": f'<?xml version="1.0"?><w:document xmlns:w="{_W}"><w:body>{body}{raw}</w:body></w:document>'
        },
    )


def excel(rows: str, name: str = "Sales", more: dict[str, str | bytes] | None = None) -> bytes:
    """A workbook with one sheet, whose rows are given as XML."""
    sheet = f'<?xml version="1.0"?><worksheet xmlns="{_S}"><sheetData>{rows}</sheetData></worksheet>'
    book = f'<?xml version="1.0"?><workbook xmlns="{_S}" xmlns:r="{_R}"><sheets><sheet name="{name}" sheetId="1" r:id="rId1"/></sheets></workbook>'
    return office(
        "xl/workbook.xml",
        "spreadsheetml.sheet",
        {
            "xl/workbook.xml": book,
            "xl/_rels/workbook.xml.rels": relations({"rId1": ("worksheet", "worksheets/sheet1.xml")}),
            "xl/worksheets/sheet1.xml": sheet,
            **(more or {}),
        },
        {"/xl/worksheets/sheet1.xml": f"{_TYPE}.spreadsheetml.worksheet+xml"},
    )


def row(number: int, *values: str | int | float) -> str:
    """A row of inline texts and numbers."""
    cells = []
    for at, value in enumerate(values):
        place = f"{chr(65 + at)}{number}"
        if isinstance(value, str):
            cells.append(f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>')
        else:
            cells.append(f'<c r="{place}"><v>{value}</v></c>')
    return f'<row r="{number}">{"".join(cells)}</row>'


def pdf(*pages: str, title: str = "") -> bytes:
    """A PDF with one line of text a page."""
    bodies = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    kids = []
    for text in pages:
        stream = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET".encode() if text else b""
        kids.append(f"{len(bodies) + 1} 0 R")
        bodies.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(bodies) + 2} 0 R "
            "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>".encode()
        )
        bodies.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    bodies[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
    return pdf_of([*bodies, f"<< /Title ({title}) >>".encode()])


def pdf_of(bodies: list[bytes]) -> bytes:
    """A PDF of these objects: the first is its catalogue, the last its facts."""
    out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    places = []
    for number, body in enumerate(bodies, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"<< /Size %d /Root 1 0 R /Info %d 0 R >>" % (len(places) + 1, len(places))
    return bytes(out + b"trailer\n" + trailer + b"\nstartxref\n%d\n%%%%EOF\n" % start)


_PARTS = {".docx": "lowriter", ".odt": "lowriter", ".pptx": "loimpress", ".odp": "loimpress"}
"""The part of LibreOffice that reads a kind of document: each is a package of its own."""


def by_libreoffice(file: Path, to: str, place: Path) -> str:
    """The file as LibreOffice converts it; skips the test where it is not installed."""
    return converted([file], to, place)[0].read_text(encoding="utf-8", errors="replace")


def converted(files: list[Path], to: str, place: Path) -> list[Path]:
    """Files converted by one run of LibreOffice, in their order; those that it did not convert are left out."""
    program = shutil.which("soffice")
    if program is None:
        pytest.skip("not installed: soffice (Debian: libreoffice-calc, libreoffice-writer, libreoffice-impress)")
    needed = {_PARTS[file.suffix] for file in files if file.suffix in _PARTS}
    if lacking := sorted(part for part in needed if shutil.which(part) is None):
        pytest.skip(f"not installed: {', '.join(lacking)} (Debian: libreoffice-writer, libreoffice-impress)")
    out = place / "converted"
    out.mkdir(exist_ok=True)
    profile = f"-env:UserInstallation=file://{place / 'profile'}"
    # Two runs at once on one machine disturb each other's start.
    with locked(Path(place) / "lock"):
        argv = [
            program,
            profile,
            "--headless",
            "--norestore",
            "--convert-to",
            to,
            "--outdir",
            str(out),
            *map(str, files),
        ]
        subprocess.run(argv, capture_output=True, timeout=400, check=False, stdin=subprocess.DEVNULL)
    ending = to.partition(":")[0]
    return [made for file in files if (made := out / f"{file.stem}.{ending}").exists()]
