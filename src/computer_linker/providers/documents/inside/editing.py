"""Small changes in documents: cells, texts, and the fields of a PDF form. What is not named stays as it is."""

import io
from typing import Any, BinaryIO

from computer_linker.providers.documents.inside.base import (
    Payload,
    Refused,
    Request,
    damaged,
    invalid,
    missing,
    too_large,
)
from computer_linker.providers.documents.inside.cells import (
    recalculated,
    surveyed,
    wanted_cells,
    with_cells,
    without_chain,
)
from computer_linker.providers.documents.inside.excel import Workbook
from computer_linker.providers.documents.inside.markup import tree
from computer_linker.providers.documents.inside.package import Package
from computer_linker.providers.documents.inside.parts import kind_of
from computer_linker.providers.documents.inside.repack import MAX_FILE, repacked
from computer_linker.providers.documents.inside.slides import slide_parts
from computer_linker.providers.documents.inside.splice import paragraphs, replaced

_ODF = frozenset(("p", "h"))
_WORD_PARTS = ("header", "footer", "footnotes", "endnotes")


def edit(kind: str, file: BinaryIO, request: Request) -> Payload:
    """The edited file's bytes. Raises Refused, with nothing changed, when one of the edits does not apply."""
    edits = request.edits
    if kind == "pdf":
        if edits.get("cells") or edits.get("texts"):
            raise invalid("In a PDF only the fields of its form are changed, by `fields`.")
        return _form(file, dict(edits.get("fields") or {}))
    if edits.get("fields"):
        raise invalid("`fields` is for a PDF form.")
    if kind != "package":
        raise invalid("Only Word, Excel, PowerPoint and OpenDocument files and PDF forms are edited.")
    package = Package(file)
    found, main = kind_of(package)
    if edits.get("cells"):
        if found != "excel":
            raise invalid("`cells` is for an Excel workbook (.xlsx); in other documents change a text by `texts`.")
        changed, facts = _cells(package, main, edits["cells"])
    else:
        changed, facts = _texts(package, found, main, edits.get("texts") or [])
    return Payload("edited", {**facts, "parts": sorted(changed)}, repacked(package, changed))


def _texts(
    package: Package, kind: str, main: str, edits: list[dict[str, Any]]
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The changed parts of a document whose paragraphs hold the texts."""
    slides = slide_parts(package, main) if kind == "powerpoint" else []
    changed: dict[str, bytes] = {}
    total = 0
    for edit in edits:
        parts = _parts_of(package, kind, main, slides, edit.get("page"))
        if kind != "odt" and kind != "odp" and "\n" in edit["newText"]:
            raise invalid("`newText` is part of one paragraph, so it has no line ends.")
        found = {part: _replaced(changed.get(part) or package.read(part), kind, edit) for part in parts}
        count = sum(number for _, number in found.values())
        if count == 0:
            raise Refused("not_found", f"No paragraph holds the text {edit['oldText'][:100]!r}.")
        if count > 1 and not edit.get("replaceAll"):
            raise invalid(
                f"The text {edit['oldText'][:100]!r} is there {count} times; give more of it, or use replaceAll."
            )
        changed |= {part: content for part, (content, number) in found.items() if number}
        total += count
    return changed, {"replaced": total}


def _replaced(content: bytes, kind: str, edit: dict[str, Any]) -> tuple[bytes, int]:
    odf = kind in ("odt", "odp")
    found = paragraphs(content, _ODF, None) if odf else paragraphs(content, frozenset(("p",)), "t")
    return replaced(content, found, edit["oldText"], edit["newText"], odf=odf)


def _parts_of(package: Package, kind: str, main: str, slides: list[str], page: int | None) -> list[str]:
    match kind:
        case "word":
            folder = main.rpartition("/")[0]
            beside = [
                name
                for name in package.infos
                if name.startswith(f"{folder}/") and name.endswith(".xml")
                and name.removeprefix(f"{folder}/").startswith(_WORD_PARTS)
            ]  # fmt: skip
            return [main, *beside]
        case "powerpoint":
            if page is not None and page > len(slides):
                raise invalid(f"There is no slide {page}: it has {len(slides)}.")
            return slides if page is None else [slides[page - 1]]
        case "odt" | "odp":
            return ["content.xml"]
        case "ods":
            raise invalid("Cells of an OpenDocument spreadsheet are not edited; save it as .xlsx.")
    raise invalid("This document has no text that can be edited.")


def _cells(package: Package, main: str, edits: list[dict[str, Any]]) -> tuple[dict[str, bytes], dict[str, Any]]:
    book = Workbook(package, main)
    workbook = package.read(main)
    ids = [one.attributes.get("sheetId", "") for one in tree(workbook).find_all("sheet")]
    changed: dict[str, bytes] = {}
    chain_part = next((name for name in package.infos if name.endswith("/calcChain.xml")), None)
    needs_calculation, total = chain_part is not None, 0
    by_sheet: dict[int, list[dict[str, Any]]] = {}
    for edit in edits:
        by_sheet.setdefault(book.index(Request(sheet=edit.get("sheet"))), []).append(edit)
    for index, given in by_sheet.items():
        part = book.parts[index]
        content = package.read(part)
        sheet = surveyed(content)
        values = wanted_cells(given)
        changed[part], gone = with_cells(content, sheet, values)
        total += len(values)
        has_new = any(isinstance(value, str) and value.startswith("=") for value in values.values())
        needs_calculation = needs_calculation or sheet.has_formulas or has_new
        if gone and chain_part is not None:
            changed[chain_part] = without_chain(changed.get(chain_part) or package.read(chain_part), ids[index], gone)
    if needs_calculation:
        changed[main] = recalculated(workbook)
    return changed, {"cells": total, "recalculates": needs_calculation}


def _form(file: BinaryIO, fields: dict[str, Any]) -> Payload:
    """The PDF with new values of form fields, appended to it: its first bytes are the old file."""
    try:
        from pypdf import PdfReader, PdfWriter
        from pypdf.errors import PyPdfError
    except ImportError:
        raise missing("pypdf", "A PDF form") from None
    if file.seek(0, 2) > MAX_FILE:
        raise too_large("The file", MAX_FILE)
    file.seek(0)
    old = file.read()
    try:
        known = PdfReader(io.BytesIO(old)).get_fields() or {}
        unknown = [name for name in fields if name not in known]
        if unknown:
            names = ", ".join(list(known)[:50]) or "none"
            raise Refused("not_found", f"There is no field {unknown[0]!r} in the form; there are: {names}.")
        writer = PdfWriter(io.BytesIO(old), incremental=True)
        for page in writer.pages:
            if "/Annots" in page:
                writer.update_page_form_field_values(page, fields, auto_regenerate=False)
        out = io.BytesIO()
        writer.write(out)
    except (PyPdfError, KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError, OSError) as error:
        raise damaged(f"its form cannot be changed ({str(error)[:200]})") from None
    if not out.getvalue().startswith(old):
        raise damaged("its form cannot be changed by an addition")
    return Payload("edited", {"fields": len(fields), "parts": []}, out.getvalue())
