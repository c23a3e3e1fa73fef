"""Changes text in an XML part by byte positions, so that everything else in it stays as it was written."""

from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape, unescape

from computer_linker.providers.documents.inside.base import Refused, damaged
from computer_linker.providers.documents.inside.markup import local

_NAMED = {"&quot;": '"', "&apos;": "'"}


@dataclass(slots=True)
class Segment:
    """A run of characters in the source, and the start tag it follows."""

    start: int
    end: int
    text: str
    tag: tuple[int, int] | None = None


@dataclass(slots=True)
class Paragraph:
    segments: list[Segment] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(segment.text for segment in self.segments)


def checked_parser(content: bytes) -> Any:
    """A parser whose positions are byte offsets into `content`. Refuses entity declarations and other encodings."""
    made = expat.ParserCreate()

    def declared(_version: str, encoding: str | None, _standalone: int) -> None:
        if (encoding or "utf-8").lower() not in ("utf-8", "us-ascii", "ascii"):
            raise Refused("invalid_request", f"A part is written in {encoding}; only UTF-8 is edited.")

    def refuse(*_: Any) -> None:
        raise Refused("execution_failed", "The file declares XML entities, which no document needs: it is not edited.")

    made.XmlDeclHandler, made.EntityDeclHandler = declared, refuse
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise Refused("invalid_request", "A part is written in UTF-16; only UTF-8 is edited.")
    return made


def run(made: Any, content: bytes) -> None:
    try:
        made.Parse(content, True)
    except expat.ExpatError as error:
        raise damaged(f"its XML is not well-formed ({error})") from None


def tag_end(content: bytes, at: int) -> int:
    """The position after the tag that starts at `at`; a `>` inside a quoted value does not end it."""
    quote = 0
    for place in range(at, len(content)):
        byte = content[place]
        if quote:
            quote = 0 if byte == quote else quote
        elif byte in (0x22, 0x27):
            quote = byte
        elif byte == 0x3E:
            return place + 1
    raise damaged("a tag does not end")


def paragraphs(content: bytes, names: frozenset[str], text_in: str | None) -> list[Paragraph]:
    """The paragraphs with their characters; only those in elements `text_in`, where that is given."""
    found: list[Paragraph] = []
    open_ones: list[Paragraph] = []
    tags: list[tuple[str, int]] = []
    pending: list[int] = []
    made = checked_parser(content)

    def close_segment() -> None:
        if not pending:
            return
        start, end = pending.pop(), made.CurrentByteIndex
        raw = content[start:end]
        name, at = tags[-1] if tags else ("", 0)
        if open_ones and b"<" not in raw and (text_in is None or name == text_in):
            text = raw.decode("utf-8", "replace")
            if "&#" not in text:
                tag = (at, tag_end(content, at))
                open_ones[-1].segments.append(Segment(start, end, unescape(text, _NAMED), tag))

    def start(name: str, _attributes: dict[str, str]) -> None:
        close_segment()
        tags.append((local(name), made.CurrentByteIndex))
        if local(name) in names:
            open_ones.append(Paragraph())
            found.append(open_ones[-1])

    def end(name: str) -> None:
        close_segment()
        tags.pop()
        if local(name) in names:
            open_ones.pop()

    def text(_data: str) -> None:
        if not pending:
            pending.append(made.CurrentByteIndex)

    made.StartElementHandler, made.EndElementHandler, made.CharacterDataHandler = start, end, text
    made.CommentHandler = made.StartCdataSectionHandler = made.EndCdataSectionHandler = lambda *_: close_segment()
    made.ProcessingInstructionHandler = lambda *_: close_segment()
    run(made, content)
    return found


def replaced(content: bytes, found: list[Paragraph], old: str, new: str, *, odf: bool) -> tuple[bytes, int]:
    """The part with every `old` replaced, and how often. A text may begin in one run and end in another."""
    patches: list[tuple[int, int, bytes]] = []
    count = 0
    for paragraph in found:
        texts = [segment.text for segment in paragraph.segments]
        touched: set[int] = set()
        at = "".join(texts).find(old)
        while at >= 0:
            count += 1
            touched |= _replace_once(texts, at, len(old), new)
            at = "".join(texts).find(old, at + len(new))
        for index in touched:
            segment = paragraph.segments[index]
            patches.append((segment.start, segment.end, _raw(texts[index], odf=odf)))
            patches += _keeping_blanks(content, segment, texts[index], odf=odf)
    return applied(content, patches), count


def _replace_once(texts: list[str], at: int, length: int, new: str) -> set[int]:
    """Put the new text where the old one begins, and take the rest of the old one out of the runs after it."""
    touched: set[int] = set()
    place, is_first = 0, True
    for index, text in enumerate(texts):
        start, end = max(at - place, 0), min(at + length - place, len(text))
        place += len(text)
        if start >= end:
            continue
        texts[index] = text[:start] + (new if is_first else "") + text[end:]
        touched.add(index)
        is_first = False
    return touched


def _raw(text: str, *, odf: bool) -> bytes:
    raw = escape(text)
    if odf:
        raw = raw.replace("\t", "<text:tab/>").replace("\n", "<text:line-break/>")
        while "  " in raw:
            start = raw.index("  ")
            end = start + len(raw[start:]) - len(raw[start:].lstrip(" "))
            raw = f'{raw[:start]} <text:s text:c="{end - start - 1}"/>{raw[end:]}'
    return raw.encode("utf-8")


def _keeping_blanks(content: bytes, segment: Segment, text: str, *, odf: bool) -> list[tuple[int, int, bytes]]:
    """The mark that keeps blanks at a run's ends, where Word would drop them."""
    if odf or segment.tag is None or text == text.strip():
        return []
    start, end = segment.tag
    tag = content[start:end]
    if not tag.startswith(b"<w:t") or b"xml:space" in tag:
        return []
    return [(end - 1, end - 1, b' xml:space="preserve"')]


def applied(content: bytes, patches: list[tuple[int, int, bytes]]) -> bytes:
    """The content with these byte ranges replaced."""
    for start, end, new in sorted(patches, reverse=True):
        content = content[:start] + new + content[end:]
    return content
