"""EPUB books by chapter, e-mails with their attachments, notebooks with their outputs, web pages."""

import json
import posixpath
from collections.abc import Iterator
from email import message_from_binary_file, policy
from email.message import EmailMessage, Message
from html.parser import HTMLParser
from typing import Any, BinaryIO
from urllib.parse import unquote

from computer_linker.providers.documents.inside.base import (
    MAX_PART,
    Document,
    Part,
    Payload,
    Refused,
    Request,
    check_page,
    damaged,
    invalid,
    no_image,
    too_large,
)
from computer_linker.providers.documents.inside.markup import tree
from computer_linker.providers.documents.inside.package import Package

_BLOCKS = frozenset(
    "p div br li tr h1 h2 h3 h4 h5 h6 table ul ol dl dt dd section article blockquote pre header footer title".split()
)
_HIDDEN = frozenset(("script", "style", "head", "template", "noscript"))


class _PageText(HTMLParser):
    """The visible text of a web page, block by block."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hidden = 0
        self._pre = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in _HIDDEN
        self._pre += tag == "pre"
        if tag in _BLOCKS:
            self.pieces.append("\n")
        if tag == "li":
            self.pieces.append("- ")
        elif tag in ("td", "th"):
            self.pieces.append("\t")
        elif len(tag) == 2 and tag[0] == "h" and tag[1].isdigit():
            self.pieces.append("#" * int(tag[1]) + " ")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in _HIDDEN and self._hidden > 0
        self._pre -= tag == "pre" and self._pre > 0
        if tag in _BLOCKS:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            blank = " " if data[:1].isspace() else "", " " if data[-1:].isspace() else ""
            self.pieces.append(
                data if self._pre else blank[0] + " ".join(data.split()) + (blank[1] if data.strip() else "")
            )


def page_text(markup: str) -> str:
    """The visible text of HTML, without scripts and styles."""
    page = _PageText()
    page.feed(markup)
    page.close()
    lines: list[str] = []
    for line in "".join(page.pieces).splitlines():
        line = line.strip(" ")
        if line.strip() or (lines and lines[-1]):
            lines.append(line)
    return "\n".join(lines).strip("\n") + "\n"


def epub(package: Package, request: Request) -> Document:
    """The chapters of a book in reading order."""
    if request.wants_image:
        no_image("book")
    container = tree(package.read("META-INF/container.xml"))
    root = container.find("rootfile")
    main = "" if root is None else root.attributes.get("full-path", "")
    book = tree(package.read(main))
    folder = posixpath.dirname(main)
    hrefs = {one.attributes.get("id", ""): one.attributes.get("href", "") for one in book.find_all("item")}
    spine = [hrefs.get(one.attributes.get("idref", ""), "") for one in book.find_all("itemref")]
    names = [posixpath.normpath(posixpath.join(folder, unquote(href))) for href in spine if href]
    names = [name for name in names if name in package]
    first = check_page(request, max(1, len(names)), "chapter")
    title = book.find("title")

    def read() -> Iterator[Part]:
        for number, name in enumerate(names, 1):
            if number >= first:
                yield Part(number, page_text(package.read(name).decode("utf-8", "replace")))

    facts = {"title": title.all_text().strip()} if title is not None and title.all_text().strip() else {}
    return Document("EPUB book", "chapter", len(names), read(), facts)


def mail(file: BinaryIO, request: Request) -> Document | Payload:
    """An e-mail: its headers, its text, and the names of its attachments; `member` gives one of these."""
    if file.seek(0, 2) > MAX_PART:
        raise too_large("The message", MAX_PART)
    file.seek(0)
    try:
        message = message_from_binary_file(file, policy=policy.default)
    except (ValueError, LookupError, RecursionError) as error:
        raise damaged(str(error)) from None
    attached = _attachments(message)
    if request.member is not None:
        return _attachment(attached, request)
    if request.wants_image:
        no_image("message")
    lines = [f"{name}: {_header(message, name)}" for name in ("From", "To", "Cc", "Date", "Subject") if message[name]]
    lines += ["", _body(message).strip("\n"), ""]
    lines += [f"Attachment: {name} ({part.get_content_type()}, {len(_bytes(part))} bytes)" for name, part in attached]
    return Document(
        "e-mail", parts=[Part(1, "\n".join(lines).strip("\n") + "\n")], facts={"attachments": len(attached)}
    )


def _header(message: Message, name: str) -> str:
    try:
        return " ".join(str(message[name]).split())
    except (ValueError, IndexError, TypeError, LookupError, AttributeError):
        return "(unreadable)"


def _attachments(message: Message) -> list[tuple[str, Message]]:
    found = []
    for number, part in enumerate(message.walk(), 1):
        if part.is_multipart():
            continue
        try:
            name = part.get_filename()
        except (ValueError, LookupError, TypeError):
            name = None
        if name or part.get_content_maintype() not in ("text", "multipart", "message"):
            found.append((name or f"part-{number}", part))
    return found


def _bytes(part: Message) -> bytes:
    try:
        content = part.get_payload(decode=True)
    except (ValueError, LookupError, AssertionError):
        return b""
    return content if isinstance(content, bytes) else b""


def _attachment(attached: list[tuple[str, Message]], request: Request) -> Payload:
    for name, part in attached:
        if name == request.member:
            return Payload("member", {"name": name, "media": part.get_content_type()}, _bytes(part))
    names = ", ".join(name for name, _ in attached)[:500]
    raise Refused("not_found", f"There is no attachment {request.member!r}; there are: {names or 'none'}.")


def _body(message: Message) -> str:
    part: Any = message
    if isinstance(message, EmailMessage):
        try:
            part = message.get_body(("plain", "html")) or message
        except (ValueError, LookupError, AttributeError, KeyError):
            part = message
    if part.is_multipart():
        part = next((one for one in part.walk() if one.get_content_maintype() == "text"), None)
    if part is None:
        return ""
    text = _text(_bytes(part), part.get_content_charset() or "utf-8")
    return page_text(text) if part.get_content_type() == "text/html" else text


def _text(content: bytes, charset: str) -> str:
    try:
        return content.decode(charset, "replace")
    except (LookupError, ValueError):
        return content.decode("utf-8", "replace")


def notebook(file: BinaryIO, request: Request) -> Document | Payload:
    """A notebook's cells with their outputs; a picture among the outputs is a `member`."""
    if file.seek(0, 2) > MAX_PART:
        raise too_large("The notebook", MAX_PART)
    file.seek(0)
    try:
        book = json.loads(file.read())
        # Before version 4 the cells lay in worksheets.
        sheets = book.get("worksheets", [book])
        cells = [cell for sheet in sheets for cell in sheet["cells"]]
        parts = [_cell(number, cell, request) for number, cell in enumerate(cells, 1)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise damaged(f"it is no notebook ({error})") from None
    for part in parts:
        if isinstance(part, Payload):
            return part
    if request.member is not None or request.wants_image:
        raise Refused("not_found", f"There is no picture {request.member!r} among its outputs.")
    first = check_page(request, max(1, len(parts)), "cell")
    shown = [part for part in parts if isinstance(part, Part) and part.number >= first]
    return Document("notebook", "cell", len(parts), shown)


def _cell(number: int, cell: dict[str, Any], request: Request) -> Part | Payload:
    kind = str(cell.get("cell_type", ""))
    lines = [_joined(cell.get("source", cell.get("input", "")))]
    for at, output in enumerate(cell.get("outputs", ()), 1):
        data = output.get("data", output)
        if output.get("output_type") == "error" or output.get("ename"):
            lines.append(f"error: {output.get('ename', '')}: {output.get('evalue', '')}")
            continue
        text = data.get("text/plain", data.get("text", ""))
        if _joined(text).strip():
            lines.append("output: " + _joined(text).rstrip("\n"))
        for media in ("image/png", "image/jpeg"):
            if media in data:
                name = f"{number}-{at}.{media[6:]}"
                if request.member == name:
                    from base64 import b64decode

                    return Payload("member", {"name": name, "media": media}, b64decode(_joined(data[media])))
                lines.append(f"output: a picture; read it with `member` `{name}`")
    return Part(number, "\n".join(line.rstrip("\n") for line in lines if line) + "\n", kind)


def _joined(value: Any) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value)


def web_page(file: BinaryIO, request: Request) -> Document:
    """The visible text of an HTML file."""
    if request.wants_image:
        no_image("web page")
    content = file.read(MAX_PART + 1)
    if len(content) > MAX_PART:
        raise invalid("The page is too large.")
    return Document("web page", parts=[Part(1, page_text(content.decode("utf-8", "replace")))])
