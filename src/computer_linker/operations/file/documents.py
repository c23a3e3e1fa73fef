"""How file.read shows documents: decoded in the sandbox, cut to the client's budget, with where to read on."""

from typing import Annotated, Any

from anyio.to_thread import run_sync
from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from computer_linker.computer.facets.files import Piece
from computer_linker.computer.facets.lines import MAX_REPLY, fit_text, line_window
from computer_linker.computer.facets.screen import Pixmap
from computer_linker.errors import Conflict, InvalidRequest, LinkError, ProviderUnavailable
from computer_linker.model.geometry import Rect
from computer_linker.model.paths import RootedPath
from computer_linker.providers.documents.decoder import Decoded, Decoder, in_memory
from computer_linker.providers.documents.kinds import HEAD, kind_of, text_kind_of
from computer_linker.providers.ocr import Ocr
from computer_linker.registry import Context, Model
from computer_linker.system import os

_OCR_PAGES = 3
"""Scanned pages read in one call: each takes seconds."""
_OCR_EDGE = 2200
_SCANNED = "(no text on this page, only a picture)\n"
_NEWLY_MADE = 3
"""How deep a member of a member may lie."""


class ReadOn(Model):
    """The options that continue the reading."""

    page: int | None = None
    start_line: int | None = None
    sheet: str | None = None
    range: str | None = None

    @model_serializer(mode="wrap")
    def _known(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in serialize(self).items() if value is not None}


class DocumentFacts(Model):
    """What is known of a document besides its text; what does not apply is left out."""

    kind: str
    unit: Annotated[str | None, Field(description="What it is made of: page, sheet, slide, chapter or cell.")] = None
    count: Annotated[int | None, Field(description="How many of these it has.")] = None
    first: int | None = None
    last: Annotated[int | None, Field(description="The last one in `content`.")] = None
    title: str | None = None
    sheets: list[str] | None = None
    range: Annotated[str | None, Field(description="The cells in `content`.")] = None
    used: Annotated[str | None, Field(description="All cells that the sheet says it uses.")] = None
    rows: int | None = None
    columns: int | None = None
    members: int | None = None
    attachments: int | None = None
    member: str | None = None
    width: int | None = None
    height: int | None = None
    shown_width: int | None = None
    shown_height: int | None = None
    frames: int | None = None
    by_ocr: Annotated[list[int] | None, Field(description="Pages whose text was read from a picture.")] = None
    next: Annotated[ReadOn | None, Field(description="Send these options to read on.")] = None
    boundary: Annotated[str, Field(description="What held the decoder.")] = "none"

    @model_serializer(mode="wrap")
    def _known(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in serialize(self).items() if value is not None}


class DocumentOptions(Model):
    """The options of file.read that choose a part of a document."""

    page: Annotated[
        int | None, Field(ge=1, description="Of a document: the first page, slide, chapter, cell or sheet wanted.")
    ] = None
    page_count: Annotated[
        int | None, Field(ge=1, description="How many of these; by default as many as fit the answer.")
    ] = None
    sheet: Annotated[str | None, Field(max_length=256, description="Of a spreadsheet: the sheet, by name.")] = None
    range: Annotated[
        str | None, Field(max_length=40, description="Of a spreadsheet or table: `A1:D20`, rows `5:90`, columns `A:C`.")
    ] = None
    member: Annotated[
        str | None, Field(max_length=4096, description="Of an archive, e-mail or notebook: the member to read.")
    ] = None

    @property
    def is_given(self) -> bool:
        return any(value is not None for value in (self.page, self.page_count, self.sheet, self.range, self.member))


class Content(Model):
    """A document's text, and its facts."""

    content: str
    truncated: bool
    start_line: int | None
    next_line: int | None
    facts: DocumentFacts


def document_kind(head: bytes, name: str, *, also_text: bool) -> str | None:
    """The kind of document that a file is; one that is written as text only counts where that is asked for."""
    kind = kind_of(head[:HEAD])
    return kind or (text_kind_of(head[:HEAD], name) if also_text else None)


async def read_document(ctx: Context, path: RootedPath, kind: str, request: dict[str, Any], piece: Piece) -> Content:
    """Decode one file. Pictures are sent beside the answer.

    Raises:
        Conflict: the file was changed while it was decoded.
    """
    fd = ctx.computer.files.open_file(path)
    try:
        before = os.fstat(fd)
        found = await _decoded(ctx, fd, kind, {**request, "name": path.name})
        after = os.fstat(fd)
    finally:
        os.close(fd)
    if (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size) or before.st_size != piece.size:
        raise Conflict(f"{path.shown} was changed while it was read.", path=path.shown)
    return found


async def _decoded(ctx: Context, fd: int, kind: str, request: dict[str, Any], depth: int = 0) -> Content:
    decoder = ctx.use(Decoder)
    found = await decoder.run(fd, {"action": "read", "kind": kind, **request}, ctx.scope.policy)
    ctx.boundary = found.boundary
    if found.boundary == "none" and not depth:
        ctx.warn("No kernel boundary held the decoder of this document; only its limits on time and memory did.")
    ctx.note(document=kind)
    match found.facts.get("payload"):
        case "picture":
            return _picture(ctx, found)
        case "member":
            return await _member(ctx, found, request, depth)
    return await _text(ctx, fd, kind, found, request)


def _picture(ctx: Context, found: Decoded) -> Content:
    ctx.attach(str(found.facts["mime"]), found.payload)
    facts = _facts(found, kind=f"{found.facts.get('format', '')} picture".strip())
    return Content(content="", truncated=False, start_line=None, next_line=None, facts=facts)


async def _member(ctx: Context, found: Decoded, request: dict[str, Any], depth: int) -> Content:
    """A member's bytes: its text, or what it is a document of."""
    name = str(found.facts.get("name", ""))
    kind = document_kind(found.payload, name, also_text=False)
    if kind is not None and depth < _NEWLY_MADE:
        inner = {key: value for key, value in request.items() if key != "member"} | {"name": name}
        with in_memory(found.payload) as fd:
            content = await _decoded(ctx, fd, kind, inner, depth + 1)
        return content.model_copy(update={"facts": content.facts.model_copy(update={"member": name})})
    start = request.get("start_line") or 1
    room = min(int(request["max_bytes"]), MAX_REPLY - 98_304)
    window, next_line = await run_sync(line_window, found.payload, start, request.get("line_count"), room)
    kept = fit_text(window, MAX_REPLY - 98_304)
    if len(kept) < len(window):
        next_line = start + max(1, kept.count(b"\n"))
    try:
        text = kept.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest(f"The member {name!r} is neither UTF-8 text nor a document.", member=name) from None
    facts = _facts(found, kind="member", member=name)
    return Content(
        content=text, truncated=next_line is not None, start_line=start, next_line=next_line,
        facts=facts.model_copy(update={"next": ReadOn(start_line=next_line)}) if next_line else facts,
    )  # fmt: skip


async def _text(ctx: Context, fd: int, kind: str, found: Decoded, request: dict[str, Any]) -> Content:
    facts = dict(found.facts)
    content = fit_text(str(facts.pop("content")).encode("utf-8", "replace"), MAX_REPLY - 98_304).decode()
    by_ocr: list[int] = []
    for page in facts.pop("scanned", [])[:_OCR_PAGES]:
        text = await _by_ocr(ctx, fd, kind, int(page), request)
        if text is None:
            break
        mark = f"--- page {page} ---\n"
        content = content.replace(mark + _SCANNED, mark + text, 1)
        by_ocr.append(int(page))
    after = ReadOn.from_wire(facts.pop("next", {}))
    is_cut = bool(facts.pop("truncated"))
    return Content(
        content=content,
        truncated=is_cut,
        start_line=facts.pop("startLine", None),
        next_line=after.start_line if after.page is None else None,
        facts=_facts(found, next=after if after.to_wire() else None, by_ocr=by_ocr or None),
    )


async def _by_ocr(ctx: Context, fd: int, kind: str, page: int, request: dict[str, Any]) -> str | None:
    """The text of a scanned page; None, with a warning, where no engine is installed."""
    asked = {"action": "read", "kind": kind, "page": page, "wants_image": True, "raw": True, "max_edge": _OCR_EDGE}
    pixels = await ctx.use(Decoder).run(fd, asked, ctx.scope.policy)
    width, height = int(pixels.facts["width"]), int(pixels.facts["height"])
    if len(pixels.payload) != width * height * 4:
        return None
    try:
        lines = await ctx.use(Ocr).lines(
            Pixmap(width, height, width * 4, pixels.payload, Rect(x=0, y=0, width=width, height=height))
        )
    except ProviderUnavailable as error:
        ctx.warn(f"Page {page} is a scan, and no OCR engine is installed. {error.message}")
        return None
    except LinkError as error:
        ctx.warn(f"Page {page} is a scan, and its text could not be read: {error.message}")
        return None
    return "".join(f"{line.text}\n" for line in lines)


_KEPT = frozenset(DocumentFacts.model_fields) - {"kind", "next", "boundary", "by_ocr", "member"}


def _facts(found: Decoded, **more: Any) -> DocumentFacts:
    names = {"shownWidth": "shown_width", "shownHeight": "shown_height"}
    known = {names.get(key, key): value for key, value in found.facts.items()}
    kept = {key: value for key, value in known.items() if key in _KEPT}
    return DocumentFacts(**{"kind": str(known.get("kind", "")), **kept, "boundary": found.boundary, **more})
