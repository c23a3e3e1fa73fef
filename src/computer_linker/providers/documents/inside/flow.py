"""Flowing text of Word and OpenDocument: paragraphs, headings, lists and tables as lines."""

import re
from collections.abc import Iterable

from computer_linker.providers.documents.inside.base import Document, Part, Request, no_image
from computer_linker.providers.documents.inside.markup import feed, parser
from computer_linker.providers.documents.inside.package import Package

_HEADING = re.compile(r"(?:heading|berschrift|titre)[ _]?(\d)", re.IGNORECASE)


class Flow:
    """Collects the lines of a document. A table's row is one line, its cells between bars."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._rows: list[list[str]] = []
        self._cells: list[list[str]] = []
        self.prefix = ""
        self._text: list[str] = []

    def add(self, text: str) -> None:
        self._text.append(text)

    def end_paragraph(self) -> None:
        text, self._text = "".join(self._text), []
        if self._cells:
            self._cells[-1].append(text.strip())
        else:
            self.lines.append(self.prefix + text if text else "")
        self.prefix = ""

    def start_row(self) -> None:
        self._rows.append([])

    def start_cell(self) -> None:
        self._cells.append([])

    def end_cell(self) -> None:
        cell = " ".join(line for line in self._cells.pop() if line) if self._cells else ""
        if self._rows:
            self._rows[-1].append(cell.replace("|", "\\|"))

    def end_row(self) -> None:
        row = self._rows.pop() if self._rows else []
        line = "| " + " | ".join(row) + " |"
        if self._cells:
            self._cells[-1].append(line)
        else:
            self.lines.append(line)

    def text(self) -> str:
        """All lines, with at most one empty line in a row."""
        out: list[str] = []
        for line in self.lines:
            if line.strip() or (out and out[-1]):
                out.append(line.rstrip() if line.strip() else "")
        return "\n".join(out).strip("\n") + "\n"


def word(package: Package, request: Request, main: str) -> Document:
    """The body of a Word document, then its notes."""
    if request.wants_image:
        no_image("Word document")
    flow = Flow()
    _word_part(flow, package.stream(main))
    folder = main.rpartition("/")[0]
    for name, title in (("footnotes", "Footnotes"), ("endnotes", "Endnotes"), ("comments", "Comments")):
        part = f"{folder}/{name}.xml" if folder else f"{name}.xml"
        if part in package:
            notes = Flow()
            _word_part(notes, package.stream(part))
            if notes.text().strip():
                flow.lines += ["", f"{title}:", *notes.lines]
    return Document("Word document", parts=[Part(1, flow.text())])


def _word_part(flow: Flow, pieces: Iterable[bytes]) -> None:
    handlers = WordText(flow)
    feed(parser(handlers.start, handlers.end, handlers.text), pieces)


class WordText:
    """Handlers for the elements of WordprocessingML. Deleted text, field codes and fallback drawings are left out."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._skipped = 0
        self._in_text = False
        self._stops = 0
        """Above 0 inside `tabs`, where `tab` is a tab stop and not a character."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self._skipped or name in ("Fallback", "del", "instrText", "delText", "moveFrom"):
            self._skipped += 1
            return
        match name:
            case "t":
                self._in_text = True
            case "tabs":
                self._stops += 1
            case "tab" if not self._stops:
                self._flow.add("\t")
            case "br" | "cr":
                self._flow.add("\n")
            case "noBreakHyphen":
                self._flow.add("-")
            case "tr":
                self._flow.start_row()
            case "tc":
                self._flow.start_cell()
            case "numPr":
                self._flow.prefix = self._flow.prefix or "- "
            case "pStyle":
                self._flow.prefix = _heading(attributes.get("w:val", "")) or self._flow.prefix

    def end(self, name: str) -> None:
        if self._skipped:
            self._skipped -= 1
            return
        match name:
            case "t":
                self._in_text = False
            case "tabs":
                self._stops -= 1
            case "p":
                self._flow.end_paragraph()
            case "tc":
                self._flow.end_cell()
            case "tr":
                self._flow.end_row()

    def text(self, data: str) -> None:
        if self._in_text and not self._skipped:
            self._flow.add(data)


def _heading(style: str) -> str:
    found = _HEADING.search(style)
    level = 1 if style == "Title" else int(found[1]) if found is not None else 0
    return "#" * level + " " if level else ""


class OdfText:
    """Handlers for the text elements of OpenDocument, shared by text, presentation and chart-free parts."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._depth = self._skipped = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self._skipped or name in ("tracked-changes", "sequence-decls", "forms", "annotation-end"):
            self._skipped += 1
            return
        match name:
            case "p" | "h":
                self._depth += 1
                if name == "h":
                    level = attributes.get("text:outline-level", "1")
                    self.flow.prefix = "#" * (int(level) if level.isdigit() else 1) + " "
            case "tab":
                self.flow.add("\t")
            case "line-break":
                self.flow.add("\n")
            case "s":
                count = attributes.get("text:c", "1")
                self.flow.add(" " * (min(int(count), 1000) if count.isdigit() else 1))
            case "list-item":
                self.flow.prefix = "- "
            case "table-row":
                self.flow.start_row()
            case "table-cell":
                self.flow.start_cell()

    def end(self, name: str) -> None:
        if self._skipped:
            self._skipped -= 1
            return
        match name:
            case "p" | "h":
                self._depth -= 1
                self.flow.end_paragraph()
            case "table-cell":
                self.flow.end_cell()
            case "table-row":
                self.flow.end_row()

    def text(self, data: str) -> None:
        if self._depth and not self._skipped:
            # White space in OpenDocument text is one blank; more is written as elements.
            self.flow.add(re.sub(r"\s+", " ", data))


def odt(package: Package, request: Request) -> Document:
    """The body of an OpenDocument text."""
    if request.wants_image:
        no_image("OpenDocument text")
    flow = Flow()
    handlers = OdfText(flow)
    feed(parser(handlers.start, handlers.end, handlers.text), package.stream("content.xml"))
    return Document("OpenDocument text", parts=[Part(1, flow.text())])
