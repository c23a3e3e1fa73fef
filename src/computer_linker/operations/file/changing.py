"""What operations that write content share: the bytes of a request, and the reply."""

import base64
import binascii
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from computer_linker.computer.facets.files import Change, Content
from computer_linker.errors import InvalidRequest
from computer_linker.model.paths import RootedPath
from computer_linker.operations.file.streaming import streamed
from computer_linker.registry import Context, Model

_SLICE = 1 << 20
"""Characters encoded at a time; a multiple of four, so that base64 can be split there."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-fA-F]{64}$")]


class ContentInput(Model):
    content: Annotated[str, Field(description="The whole new content.")]
    encoding: Annotated[
        Literal["utf8", "base64", "stream"],
        Field(
            description="How `content` is written; `stream` only between computers, which then send it beside the call."
        ),
    ] = "utf8"
    size: Annotated[int | None, Field(ge=0, description="Of a stream: its bytes; others are a `conflict`.")] = None
    sha256: Annotated[Sha256 | None, Field(description="Of a stream: its digest; another is a `conflict`.")] = None


class Written(Model):
    path: str
    size: int
    sha256: str
    created: Annotated[bool, Field(description="False when a file was there before.")]


def file_path(ctx: Context, target: str) -> RootedPath:
    """The path of a file to write. Raises InvalidRequest for a name that only a folder has, such as `notes/`."""
    if target.rstrip("/").rpartition("/")[2] in ("", ".", "..") or target.endswith("/"):
        raise InvalidRequest("The target names a folder; a file's name does not end with a slash.", field="target")
    return ctx.path(target, for_writing=True)


async def write_content(ctx: Context, change: Change) -> Written:
    """Make one write and return its reply."""
    done = (await ctx.change([change]))[0]
    ctx.note(size=done.size, sha256=done.sha256, created=done.action == "created", unchanged=done.is_same or None)
    return Written(path=done.path.shown, size=done.size, sha256=done.sha256 or "", created=done.action == "created")


def given_content(ctx: Context, input: ContentInput) -> Content:
    """The bytes to write: those of the request, or those of its byte stream."""
    if input.encoding == "stream":
        return streamed(ctx, input.content, input.size, input.sha256)
    if input.size is not None or input.sha256 is not None:
        raise InvalidRequest(
            "`size` and `sha256` are for a stream; `ifSha256` is for the file as it is.", field="input"
        )
    return content_of(input)


def content_of(input: ContentInput) -> Content:
    """The bytes of the request, in chunks where they are many. Raises InvalidRequest for text that cannot be encoded."""
    text = input.content
    if input.encoding == "stream":
        raise InvalidRequest("A stream is not in the request.", field="input.encoding")
    if input.encoding == "base64":
        return _decoded(text)
    if len(text) <= _SLICE:
        try:
            return text.encode("utf-8")
        except UnicodeEncodeError:
            raise _not_text() from None
    return lambda: _encoded(text)


def _encoded(text: str) -> Iterator[bytes]:
    for start in range(0, len(text), _SLICE):
        try:
            yield text[start : start + _SLICE].encode("utf-8")
        except UnicodeEncodeError:
            raise _not_text() from None


def _decoded(text: str) -> Content:
    if len(text) % 4:
        raise InvalidRequest("`content` is not base64.", field="input.content")
    if len(text) <= _SLICE:
        return _plain(text)
    return lambda: (_plain(text[start : start + _SLICE]) for start in range(0, len(text), _SLICE))


def _plain(text: str) -> bytes:
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise InvalidRequest("`content` is not base64.", field="input.content") from None


def _not_text() -> InvalidRequest:
    return InvalidRequest("`content` holds a lone surrogate, which is no text.", field="input.content")
