"""What every reader shares: refusals, a document's parts, and its text cut to the client's budget."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NoReturn

MAX_PART = 64 << 20
"""The largest part of a package, in bytes, that is held in memory."""


class Refused(Exception):
    """The file or request cannot be decoded; `code` is a wire code, or `missing` for a library."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code, self.message, self.details = code, message, details


def damaged(what: str) -> Refused:
    return Refused("execution_failed", f"The file is damaged: {what}.")


def too_large(what: str, limit: int) -> Refused:
    return Refused("limit_exceeded", f"{what} is larger than {limit >> 20} MB unpacked.")


def missing(library: str, kind: str) -> Refused:
    return Refused("missing", f"{kind} needs the library `{library}`, which is not installed.", library=library)


def invalid(message: str) -> Refused:
    return Refused("invalid_request", message)


@dataclass(frozen=True, slots=True)
class Request:
    """What the client asked for."""

    name: str = ""
    page: int | None = None
    page_count: int | None = None
    sheet: str | None = None
    range: str | None = None
    member: str | None = None
    start_line: int | None = None
    line_count: int | None = None
    max_bytes: int = 65_536
    max_edge: int = 1568
    max_image_bytes: int = 3_500_000
    wants_image: bool = False
    raw: bool = False
    """Pixels instead of an encoded picture, for OCR."""
    edits: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Part:
    """A page, slide, sheet or chapter; `name` where it has one besides its number."""

    number: int
    text: str
    name: str = ""


@dataclass(slots=True)
class Document:
    """A decoded file: numbered parts, or one flowing text when `unit` is empty."""

    kind: str
    unit: str = ""
    count: int = 0
    parts: Iterable[Part] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    """Besides: a title, sheet names, what to read next."""
    is_cut: bool = False
    is_bounded: bool = False
    """Its reader kept to the budget itself, as those of tables do."""


@dataclass(frozen=True, slots=True)
class Payload:
    """Bytes for the client beside the facts."""

    kind: str
    facts: dict[str, Any]
    content: bytes


Answer = Document | Payload
Reader = Callable[[BinaryIO, Request], Answer]


def opened(fd: int) -> BinaryIO:
    """The handed-in file as a seekable binary stream."""
    os.lseek(fd, 0, os.SEEK_SET)
    return os.fdopen(fd, "rb", closefd=False)


def answer_of(document: Document, request: Request) -> dict[str, Any]:
    """The document as JSON: its parts as text within the budget, and where to read on."""
    out: list[str] = []
    room, first, last = sys.maxsize if document.is_bounded else request.max_bytes, 0, 0
    more: dict[str, Any] = {}
    for part in document.parts:
        text = part.text
        if not first and request.start_line is not None and document.unit:
            text = "".join(text.splitlines(keepends=True)[request.start_line - 1 :])
        head = f"--- {document.unit} {part.number}{f' {part.name}' if part.name else ''} ---\n" if document.unit else ""
        needed = len((head + text).encode("utf-8", "replace"))
        if out and (needed > room or len(out) == request.page_count):
            more = {"page": part.number}
            break
        kept, next_line = _window(text, request, room - len(head.encode()), is_flow=not document.unit)
        out.append(head + kept + ("" if kept.endswith("\n") or not kept else "\n"))
        first, last = first or part.number, part.number
        room -= needed
        if next_line is not None:
            before = 0 if not document.unit or first != part.number else (request.start_line or 1) - 1
            more = {"startLine": next_line + before} | ({"page": part.number} if document.unit else {})
            break
    # Readers add facts while their parts are read.
    facts: dict[str, Any] = {"kind": document.kind, **document.facts}
    if document.unit:
        facts |= {"unit": document.unit, "count": document.count, "first": first, "last": last}
    elif request.start_line:
        facts["startLine"] = request.start_line
    following = more or facts.pop("next", {})
    facts |= {"content": "".join(out), "next": following, "truncated": bool(following) or document.is_cut}
    return facts


def _window(text: str, request: Request, room: int, *, is_flow: bool) -> tuple[str, int | None]:
    """The lines wanted, as many as fit, and the number of the line after them; None at the end."""
    lines = text.splitlines(keepends=True)
    start = (request.start_line or 1) if is_flow else 1
    wanted = lines[start - 1 : None if request.line_count is None or not is_flow else start - 1 + request.line_count]
    kept: list[str] = []
    for line in wanted:
        size = len(line.encode("utf-8", "replace"))
        if size > room:
            if not kept:
                kept.append(line.encode("utf-8", "replace")[: max(room, 16)].decode("utf-8", "ignore"))
            break
        kept.append(line)
        room -= size
    end = start - 1 + len(kept)
    return "".join(kept), end + 1 if end < len(lines) else None


def numbered(texts: Iterable[tuple[int, str, str]], first: int) -> Iterator[Part]:
    """Parts from (number, name, text), from `first` on."""
    return (Part(number, text, name) for number, name, text in texts if number >= first)


def check_page(request: Request, count: int, unit: str) -> int:
    """The wanted first part. Refuses one that the document does not have."""
    page = request.page or 1
    if page > count:
        raise invalid(f"There is no {unit} {page}: it has {count}.")
    return page


def no_image(kind: str) -> NoReturn:
    raise invalid(f"A {kind} is not shown as a picture; leave `encoding` out to read its text.")
