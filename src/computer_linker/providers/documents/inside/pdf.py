"""PDF by PDFium: text by page, a page as a picture, form fields."""

from collections.abc import Iterator
from typing import Any, BinaryIO

from computer_linker.providers.documents.inside.base import (
    Document,
    Part,
    Payload,
    Refused,
    Request,
    check_page,
    damaged,
    invalid,
    missing,
)
from computer_linker.providers.documents.inside.pictures import fitted

_MAX_SIDE_POINTS = 14_400
SCANNED = "(no text on this page, only a picture)\n"


def pdf(file: BinaryIO, request: Request) -> Document | Payload:
    """The text of each page; with `wants_image` one page as a picture."""
    try:
        import pypdfium2
    except ImportError:
        raise missing("pypdfium2", "A PDF") from None
    try:
        found: Any = pypdfium2.PdfDocument(file)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise invalid("It is encrypted, and passwords are not supported.") from None
        raise damaged(str(error)) from None
    if found.get_formtype():
        found.init_forms()
    count = len(found)
    first = check_page(request, max(1, count), "page")
    try:
        if request.wants_image:
            return _rendered(found[first - 1], request, {"page": first, "count": count})
    except pypdfium2.PdfiumError as error:
        raise damaged(str(error)) from None
    facts: dict[str, Any] = {"title": title} if (title := _title(found)) else {}
    return Document("PDF", "page", count, _pages(found, first, facts, pypdfium2.PdfiumError), facts)


def _title(found: Any) -> str:
    return " ".join(str(found.get_metadata_dict(skip_empty=True).get("Title", "")).split())[:300]


def _pages(found: Any, first: int, facts: dict[str, Any], fault: type[Exception]) -> Iterator[Part]:
    for number in range(first, len(found) + 1):
        try:
            page = _with_fields(found, number - 1)
            text = _plain(page.get_textpage().get_text_bounded())
            if not text and any(True for _ in page.get_objects(max_depth=2)):
                facts.setdefault("scanned", []).append(number)
                text = SCANNED
            page.close()
        except fault:
            text = "(this page is damaged)\n"
        yield Part(number, text)


def _with_fields(found: Any, index: int) -> Any:
    """A page with the contents of its form's fields as text on it; the file itself is not changed."""
    page = found[index]
    if found.formenv is not None:
        page.flatten()
        page.close()
        page = found[index]
    return page


def _plain(text: str) -> str:
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").replace("\ufffe", "").split("\n")]
    return "\n".join(lines).strip("\n") + "\n" if any(lines) else ""


def _rendered(page: Any, request: Request, facts: dict[str, Any]) -> Payload:
    width, height = page.get_size()
    if not 0 < max(width, height) <= _MAX_SIDE_POINTS:
        raise Refused("limit_exceeded", f"The page is {width:.0f} x {height:.0f} points, more than is drawn.")
    scale = min(request.max_edge / max(width, height), 4.0)
    image = page.render(scale=scale, may_draw_forms=True).to_pil()
    if request.raw:
        size = {"width": image.size[0], "height": image.size[1]}
        return Payload("pixels", size, image.convert("RGB").tobytes("raw", "BGRX"))
    return fitted(image, request, {"format": "PDF page", **facts})
