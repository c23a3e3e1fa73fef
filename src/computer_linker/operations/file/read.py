"""file.read: the text of one file inside the scope."""

from base64 import b64encode
from hashlib import sha256
from typing import Annotated, Literal

from anyio.to_thread import run_sync
from pydantic import Field

from computer_linker.computer.facets.files import Piece, Window
from computer_linker.computer.facets.lines import (
    MAX_REPLY,
    count_lines,
    fit_bytes,
    fit_text,
    line_window,
    whole_characters,
)
from computer_linker.errors import InvalidRequest, NotFound
from computer_linker.model.base import ForModels
from computer_linker.model.paths import RootedPath
from computer_linker.operations.file.documents import (
    DocumentFacts,
    DocumentOptions,
    document_kind,
    read_document,
)
from computer_linker.operations.file.near import near
from computer_linker.operations.file.streaming import send_file
from computer_linker.providers.charsets import Charset, named, recognised
from computer_linker.providers.documents.kinds import HEAD
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

MAX_BYTES = 8_000_000
_MAX_LEGACY = 20_000_000
"""The largest file, in bytes, that is read in another charset than UTF-8: its lines are found after decoding."""
Encoding = Literal["utf8", "base64"]


class TextOptions(Model):
    start_line: Annotated[int | None, Field(ge=1, description="The first line wanted, counted from 1.")] = None
    line_count: Annotated[int | None, Field(ge=1, description="How many lines.")] = None
    tail_lines: Annotated[int | None, Field(ge=1, description="The last lines instead.")] = None
    start_byte: Annotated[
        int | None, Field(ge=0, description="The first byte wanted instead of a line, to page through any file.")
    ] = None
    max_bytes: Annotated[
        int, Field(gt=0, description="Stop after this many bytes; at most 8,000,000, more is lowered to that.")
    ] = 65_536
    encoding: Annotated[
        Encoding | Literal["auto", "show", "document", "image", "stream"],
        ForModels("show"),
        Field(
            description="`auto`: text as it is, documents as their text. `show`, the default for models: a picture too, beside "
            "the answer. `document` also for CSV, notebooks, e-mail and HTML; `image` shows a picture, drawing or PDF page; "
            "`utf8` text only; `base64` any file's bytes; `stream` only between computers."
        ),
    ] = "auto"
    charset: Annotated[
        str | None,
        Field(
            max_length=40, description="Of a text that is not UTF-8: `auto` to recognise it, or a name such as cp1252."
        ),
    ] = None


class ReadOptions(DocumentOptions, TextOptions):
    """Those of text first: pydantic orders fields from the last base on."""

    suggest: Annotated[
        bool,
        ForModels(True),
        Field(description="Name files of the same name when there is none here; true for models."),
    ] = False


class FileText(Model):
    path: str
    content: str
    sha256: Annotated[str | None, Field(description="Of the whole file; null above 1 GiB.")]
    size: Annotated[int, Field(description="Of the whole file.")]
    truncated: Annotated[bool, Field(description="True when the file goes on after `content`.")]
    start_line: Annotated[int | None, Field(description="The line `content` starts with.")] = None
    next_line: Annotated[int | None, Field(description="Where to go on; null at the end.")] = None
    next_byte: Annotated[int | None, Field(description="Where to go on with `startByte`; null at the end.")] = None


class LegacyText(FileText):
    charset: Annotated[str, Field(description="What the text was decoded with; send it to file.write to keep it.")]


class DocumentText(FileText):
    document: DocumentFacts


@operation(
    "file.read",
    did="read",
    needs={Capability.FS_READ},
    effect=Effect.OBSERVE,
    text=shapes.PAGE,
    examples=[
        Example("Read the start of a file.", {"target": "notes.txt"}),
        Example("Read the end of a log.", {"target": "notes.txt", "options": {"tailLines": 20}}),
    ],
)
async def file_read(
    ctx: Context, target: str, options: ReadOptions = ReadOptions()
) -> FileText | LegacyText | DocumentText:
    """Read one file: its start, some lines, or its end. The digest is always of the whole file.

    A page ends after a whole line where it can; `nextLine` says where to go on. A file that has other names (hard links) is
    read with a warning, because one of them may lie outside the scope. Documents (PDF, Word,
    Excel, PowerPoint, OpenDocument, EPUB, archives, sound, video) are recognised by content and decoded in a sandbox, and
    `document.next` has the options to read on. Other bytes that are not UTF-8 are refused with `invalid_request`: read such a
    text with `charset`, a picture with `encoding` `image`, and any file's bytes with `base64`.
    """
    path = ctx.path(target)
    if options.encoding == "stream":
        size = await send_file(ctx, path)
        return FileText(path=path.shown, content="", sha256=None, size=size, truncated=False)
    try:
        result = await _read(ctx, path, options)
    except NotFound as error:
        if options.suggest:
            error.details.update(await near(ctx, target))
        raise
    ctx.note(size=result.size, sha256=result.sha256)
    return result


async def _read(ctx: Context, path: RootedPath, options: ReadOptions) -> FileText:
    window = window_of(options)
    if options.charset is not None:
        return await _legacy(ctx, path, options)
    if options.encoding in ("utf8", "base64"):
        return await read_text(ctx, path, window)
    wants_document = options.encoding not in ("auto", "show") or options.is_given
    if wants_document:
        piece = await _piece(ctx, path, Window(HEAD, 0, is_text=False))
        kind = document_kind(piece.content, path.name, also_text=True)
        return await _document(ctx, path, piece, kind, options)
    piece = await _piece(ctx, path, window)
    kind = await _kind_of_unreadable(ctx, path, piece)
    # A program that reads files as text would take the empty content beside a picture for the file.
    if kind is not None and (kind != "picture" or options.encoding == "show"):
        return await _document(ctx, path, piece, kind, options)
    return _text(ctx, path, piece, window, MAX_REPLY - 98_304)


async def _kind_of_unreadable(ctx: Context, path: RootedPath, piece: Piece) -> str | None:
    """The kind of a document that a person could not read as text; None for text, and for what is not recognised."""
    head = piece.content[:HEAD]
    if piece.start_line not in (None, 1) or not head:
        head = (await ctx.computer.files.read(path, Window(HEAD, 0, is_text=False))).content
    if not head.startswith(b"%PDF-") and b"\0" not in head and _is_utf8(piece.content) and _is_utf8(head):
        return None
    return document_kind(head, path.name, also_text=False)


def _is_utf8(content: bytes) -> bool:
    try:
        whole_characters(content).decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


async def _document(
    ctx: Context, path: RootedPath, piece: Piece, kind: str | None, options: ReadOptions
) -> DocumentText:
    if kind is None:
        raise InvalidRequest(
            f"{path.shown} is no document that is recognised; leave `encoding` out to read it as text.", path=path.shown
        )
    if options.encoding == "image" and kind not in ("picture", "svg", "pdf") and options.member is None:
        raise InvalidRequest(f"{path.shown} is no picture, drawing or PDF.", path=path.shown)
    if options.start_byte is not None or options.tail_lines is not None:
        raise InvalidRequest(
            "A document is read by `page`, `sheet`, `range`, `member` or `startLine`; its bytes with base64."
        )
    request = {
        "page": options.page, "page_count": options.page_count, "sheet": options.sheet, "range": options.range,
        "member": options.member,
        "start_line": options.start_line, "line_count": options.line_count, "max_bytes": min(options.max_bytes, MAX_BYTES),
        "wants_image": options.encoding == "image",
    }  # fmt: skip
    found = await read_document(ctx, path, kind, request, piece)
    return DocumentText(
        path=path.shown, content=found.content, sha256=piece.sha256, size=piece.size, truncated=found.truncated,
        start_line=found.start_line, next_line=found.next_line, document=found.facts,
    )  # fmt: skip


async def _legacy(ctx: Context, path: RootedPath, options: ReadOptions) -> LegacyText:
    """A text in another charset, decoded as a whole and then cut by lines."""
    if options.encoding not in ("auto", "show", "utf8") or options.start_byte is not None:
        raise InvalidRequest("`charset` is for text, which is paged by lines.", field="options.charset")
    data, _ = await ctx.computer.files.read_whole(path, _MAX_LEGACY)
    charset = recognised(data) if options.charset == "auto" else named(options.charset or "", data)
    if charset is None:
        raise InvalidRequest(f"The charset of {path.shown} is not recognised; name it.", field="options.charset")
    text = await run_sync(_in_utf8, path, data, charset)
    start = options.start_line or 1
    if options.tail_lines is not None:
        start = max(1, count_lines(text) + 1 - options.tail_lines)
    room = min(options.max_bytes, MAX_BYTES, MAX_REPLY // 3)
    kept, next_line = await run_sync(line_window, text, start, options.line_count, room)
    return LegacyText(
        path=path.shown, content=kept.decode(), sha256=sha256(data).hexdigest(), size=len(data),
        truncated=next_line is not None, start_line=start, next_line=next_line, charset=charset.name,
    )  # fmt: skip


def _in_utf8(path: RootedPath, data: bytes, charset: Charset) -> bytes:
    try:
        return charset.decode(data).encode("utf-8", "replace")
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            f"{path.shown} is not {charset.name} text ({error.reason}).", path=path.shown, field="options.charset"
        ) from None


def window_of(options: ReadOptions) -> Window:
    """The window that the options ask for. Raises InvalidRequest for options that contradict each other."""
    by_line = options.start_line is not None or options.line_count is not None
    if sum((by_line, options.tail_lines is not None, options.start_byte is not None)) > 1:
        raise InvalidRequest("Use either startLine and lineCount, or tailLines, or startByte.")
    if options.encoding == "base64" and (by_line or options.tail_lines is not None):
        raise InvalidRequest("base64 has no lines; use startByte to page.")
    return Window(
        min(options.max_bytes, MAX_BYTES),
        options.start_byte,
        options.start_line,
        options.line_count,
        options.tail_lines,
        options.encoding != "base64",
    )


async def read_text(ctx: Context, path: RootedPath, window: Window, room: int = MAX_REPLY - 98_304) -> FileText:
    """One file's window in wire form, cut to what fits `room` bytes of a reply."""
    piece = await _piece(ctx, path, window)
    return _base64(path, piece, window, room) if not window.is_text else _text(ctx, path, piece, window, room)


async def _piece(ctx: Context, path: RootedPath, window: Window) -> Piece:
    """The window's bytes, with what is to be known of the file as warnings."""
    piece = await ctx.computer.files.read(path, window)
    for warning in piece.warnings:
        ctx.warn(warning)
    if piece.links > 1:
        ctx.warn(f"{path.shown} is a hardlink: {piece.links} names lead to it, and some may lie outside the scope.")
    return piece


def _base64(path: RootedPath, piece: Piece, window: Window, room: int) -> FileText:
    content = fit_bytes(piece.content, room)
    end = (window.start_byte or 0) + len(content)
    is_cut = len(content) < len(piece.content) or piece.next_byte is not None
    return FileText(
        path=path.shown,
        content=b64encode(content).decode("ascii"),
        sha256=piece.sha256,
        size=piece.size,
        truncated=is_cut,
        start_line=None,
        next_line=None,
        next_byte=end if is_cut else None,
    )


def _text(ctx: Context, path: RootedPath, piece: Piece, window: Window, room: int) -> FileText:
    content, next_line, next_byte = fit_text(piece.content, room), piece.next_line, piece.next_byte
    if not content and piece.size and (window.start_line or 0) > 1:
        ctx.warn(f"{path.shown} ends before line {window.start_line}; tailLines reads its end.")
    if len(content) < len(piece.content):
        end = piece.next_byte if piece.next_byte is not None else piece.size
        next_byte = end - len(piece.content) + len(content)
        next_line = None if piece.start_line is None else piece.start_line + max(1, content.count(b"\n"))
    return FileText(
        path=path.shown,
        content=_decoded(ctx, path, content, begins_inside=bool(window.start_byte), goes_on=next_byte is not None),
        sha256=piece.sha256,
        size=piece.size,
        truncated=next_byte is not None,
        start_line=piece.start_line,
        next_line=next_line,
        next_byte=next_byte,
    )


def _decoded(ctx: Context, path: RootedPath, content: bytes, *, begins_inside: bool, goes_on: bool) -> str:
    """Decode the page. A character cut in two by a page's edge is replaced, with a warning; other bytes are refused.

    Written back with the digest of the true bytes, a replacement character would pass for the original content.
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        fault = error
    inner = content[_continuing(content) :] if begins_inside else content
    whole = whole_characters(inner) if goes_on else inner
    try:
        text = whole.decode("utf-8")
    except UnicodeDecodeError:
        if document_kind(content, path.name, also_text=False) == "picture":
            encoding, what = "image", "a picture; read it with `encoding` `image`."
        else:
            encoding, what = (
                "base64",
                f"not UTF-8 text ({fault.reason}); read it with `encoding` `base64`" + _legacy_hint(content),
            )
        raise InvalidRequest(
            f"{path.shown} is {what}", path=path.shown, field="options.encoding", encoding=encoding
        ) from None
    ctx.warn(f"This part of {path.shown} begins or ends inside a character; use encoding base64 for its exact bytes.")
    return "\ufffd" * (len(inner) < len(content)) + text + "\ufffd" * (len(whole) < len(inner))


def _legacy_hint(content: bytes) -> str:
    """The charset that a text seems to have, as the end of a sentence."""
    charset = recognised(content)
    return "." if charset is None else f", or as text with `charset` `auto` (it looks like {charset.name})."


def _continuing(content: bytes) -> int:
    """The number of bytes at the start that belong to a character of the previous page; at most three."""
    return next((at for at, byte in enumerate(content[:3]) if byte & 0xC0 != 0x80), min(3, len(content)))
