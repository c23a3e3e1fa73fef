"""file.read: the text of one file inside the scope."""

from base64 import b64encode
from typing import Annotated, Literal

from pydantic import Field

from computer_linker.artifacts.kinds import HEAD, media_type
from computer_linker.computer.facets.files import Piece, Window
from computer_linker.computer.facets.lines import MAX_REPLY, fit_bytes, fit_text, whole_characters
from computer_linker.errors import InvalidRequest, LimitExceeded
from computer_linker.model.paths import RootedPath
from computer_linker.operations.file.streaming import send_file
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

MAX_BYTES = 8_000_000
_MAX_IMAGE = 5_000_000
"""The largest picture that is shown: models' interfaces take no larger ones."""
Encoding = Literal["utf8", "base64"]


class ReadOptions(Model):
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
        Encoding | Literal["image", "stream"],
        Field(
            description="`image` shows a picture beside the answer, `base64` gives any file's bytes; `stream` only between "
            "computers."
        ),
    ] = "utf8"


class FileText(Model):
    path: str
    content: str
    sha256: Annotated[str | None, Field(description="Of the whole file; null above 1 GiB.")]
    size: Annotated[int, Field(description="Of the whole file.")]
    truncated: Annotated[bool, Field(description="True when the file goes on after `content`.")]
    start_line: Annotated[int | None, Field(description="The line `content` starts with.")] = None
    next_line: Annotated[int | None, Field(description="Where to go on; null at the end.")] = None
    next_byte: Annotated[int | None, Field(description="Where to go on with `startByte`; null at the end.")] = None


@operation(
    "file.read",
    needs={Capability.FS_READ},
    effect=Effect.OBSERVE,
    text=shapes.PAGE,
    examples=[
        Example("Read the start of a file.", {"target": "notes.txt"}),
        Example("Read the end of a log.", {"target": "notes.txt", "options": {"tailLines": 20}}),
    ],
)
async def file_read(ctx: Context, target: str, options: ReadOptions = ReadOptions()) -> FileText:
    """Read one file: its start, some lines, or its end. The digest is always of the whole file.

    A page ends after a whole line where it can; `nextLine` says where to go on. A file that has other names (hard links) is
    read with a warning, because one of them may lie outside the scope. Bytes that are not UTF-8 are refused with
    `invalid_request`: read such a file with `encoding` `base64`, and a picture with `image`, which sends it beside the answer.
    """
    path = ctx.path(target)
    if options.encoding == "stream":
        size = await send_file(ctx, path)
        return FileText(path=path.shown, content="", sha256=None, size=size, truncated=False)
    result = await (_picture(ctx, path) if options.encoding == "image" else read_text(ctx, path, window_of(options)))
    ctx.note(size=result.size, sha256=result.sha256)
    return result


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
        options.encoding == "utf8",
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


async def _picture(ctx: Context, path: RootedPath) -> FileText:
    """A whole PNG, JPEG, GIF or WebP file, beside an empty content."""
    piece = await _piece(ctx, path, Window(_MAX_IMAGE, 0, None, None, None, False))
    media = media_type(piece.content[:HEAD])
    if not media.startswith("image/"):
        raise InvalidRequest(f"{path.shown} is no PNG, JPEG, GIF or WebP picture.", path=path.shown)
    if piece.next_byte is not None:
        raise LimitExceeded(f"{path.shown} is larger than {_MAX_IMAGE} bytes.", path=path.shown, maxBytes=_MAX_IMAGE)
    ctx.attach(media, piece.content)
    return FileText(path=path.shown, content="", sha256=piece.sha256, size=piece.size, truncated=False)


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
        encoding = "image" if media_type(content[:HEAD]).startswith("image/") else "base64"
        kind = "a picture" if encoding == "image" else f"not UTF-8 text ({fault.reason})"
        raise InvalidRequest(
            f"{path.shown} is {kind}; read it with `encoding` `{encoding}`.",
            path=path.shown, field="options.encoding", encoding=encoding,
        ) from None  # fmt: skip
    ctx.warn(f"This part of {path.shown} begins or ends inside a character; use encoding base64 for its exact bytes.")
    return "\ufffd" * (len(inner) < len(content)) + text + "\ufffd" * (len(whole) < len(inner))


def _continuing(content: bytes) -> int:
    """The number of bytes at the start that belong to a character of the previous page; at most three."""
    return next((at for at, byte in enumerate(content[:3]) if byte & 0xC0 != 0x80), min(3, len(content)))
