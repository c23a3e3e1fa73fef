"""PowerPoint and OpenDocument presentations, by slide."""

from collections.abc import Iterator

from computer_linker.providers.documents.inside.base import Document, Part, Request, check_page, no_image
from computer_linker.providers.documents.inside.flow import Flow, OdfText
from computer_linker.providers.documents.inside.markup import Node, feed, parser, relations, tree
from computer_linker.providers.documents.inside.package import Package

_MAX_CHART = 200


def slide_parts(package: Package, main: str) -> list[str]:
    """The slides' parts in the order they are shown."""
    related = relations(package, main)
    listed = tree(package.read(main)).find_all("sldId")
    return [
        related[key] for one in listed if (key := one.attributes.get("id", "")) in related and related[key] in package
    ]


def powerpoint(package: Package, request: Request, main: str) -> Document:
    """The text of each slide, its tables as rows, and the speaker's notes."""
    if request.wants_image:
        no_image("presentation")
    parts = slide_parts(package, main)
    first = check_page(request, max(1, len(parts)), "slide")

    def read() -> Iterator[Part]:
        for number, part in enumerate(parts, 1):
            if number >= first:
                text = _drawn(tree(package.read(part)))
                notes = [one for one in relations(package, part).values() if "/notesSlides/" in one and one in package]
                said = _drawn(tree(package.read(notes[0])), notes=True) if notes else ""
                text += "".join(
                    _chart(package, part) for part in relations(package, part).values() if "/charts/" in part
                )
                yield Part(number, text + (f"Notes: {said}" if said.strip() else ""))

    return Document("presentation", "slide", len(parts), read())


def _drawn(root: Node, *, notes: bool = False) -> str:
    lines: list[str] = []
    stack = [root]
    while stack:
        node = stack.pop()
        if node.name == "sp" and notes and not _is_notes_body(node):
            continue
        if node.name == "tr":
            cells = [" ".join(_paragraph(p) for p in cell.find_all("p")) for cell in node.children if cell.name == "tc"]
            lines.append("| " + " | ".join(cells) + " |")
        elif node.name == "p":
            line = _paragraph(node)
            if line.strip():
                lines.append(line)
        elif node.name != "Fallback":
            stack += reversed(node.children)
    return "\n".join(lines) + ("\n" if lines else "")


def _chart(package: Package, part: str) -> str:
    """The texts of a chart: its title, series and categories, and their numbers."""
    if part not in package:
        return ""
    texts = [node.text.strip() for node in tree(package.read(part)).find_all("v", "t")]
    shown = dict.fromkeys(text for text in texts if text)
    return f"Chart: {', '.join(list(shown)[:_MAX_CHART])}\n" if shown else ""


def _is_notes_body(shape: Node) -> bool:
    place = shape.find("ph")
    return place is not None and place.attributes.get("type") == "body"


def _paragraph(node: Node) -> str:
    pieces = []
    for part in node.find_all("t", "br", "tab"):
        pieces.append(part.text if part.name == "t" else "\n" if part.name == "br" else "\t")
    return "".join(pieces)


def odp(package: Package, request: Request) -> Document:
    """The text of each page of an OpenDocument presentation or drawing."""
    if request.wants_image:
        no_image("presentation")
    pages: list[Flow] = []
    handlers = OdfText(Flow())

    def start(name: str, attributes: dict[str, str]) -> None:
        if name == "page":
            handlers.flow = Flow()
            pages.append(handlers.flow)
        handlers.start(name, attributes)

    feed(parser(start, handlers.end, handlers.text), package.stream("content.xml"))
    first = check_page(request, max(1, len(pages)), "slide")
    texts = [page.text() for page in pages]
    parts = [Part(number, text) for number, text in enumerate(texts, 1) if number >= first]
    return Document("presentation", "slide", len(pages), parts)
