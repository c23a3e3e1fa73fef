"""What every file change shares: the undo journal, the gate before the first effect, and what is known afterwards."""

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from computer_linker.computer.facets.files import Change, Changed, Content
from computer_linker.errors import InvalidRequest
from computer_linker.model.base import Model
from computer_linker.operations.file.streaming import streamed
from computer_linker.registry import Context
from computer_linker.undo.journal import Journal
from computer_linker.undo.steps import recover

_SLICE = 1 << 20
"""Characters encoded at a time; a multiple of four, so that base64 can be cut there."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-fA-F]{64}$")]


class ContentInput(Model):
    content: Annotated[str, Field(description="The whole new content.")]
    encoding: Annotated[
        Literal["utf8", "base64", "stream"],
        Field(
            description="How `content` is written; `stream` only between computers, which then send it beside the call."
        ),
    ] = "utf8"


class Written(Model):
    path: str
    size: int
    sha256: str
    created: Annotated[bool, Field(description="False when a file was there before.")]


async def make_changes(ctx: Context, changes: Sequence[Change]) -> list[Changed]:
    """Make all of the changes or none, keeping what they replace so that file.undo can take them back."""
    journal = ctx.use(Journal)
    if not journal.is_recovered:
        await recover(journal, ctx.computer.files)
    entry = journal.begin(ctx.operation_id, ctx.scope.id, ctx.principal.id, ctx.op)
    done = await ctx.computer.files.change(changes, gate=ctx.durable_intent, keeper=entry, beside=ctx.beside_intent)
    ctx.effect = "confirmed" if all(change.is_confirmed for change in done) else "unverifiable"
    for change in done:
        ctx.warnings.extend(change.warnings)
        if not change.is_undoable:
            ctx.warn(f"undoable: false. {change.path.shown} was too large to keep, so this cannot be taken back.")
    return done


async def write_content(ctx: Context, change: Change) -> Written:
    """Make one write and answer as the wire has it."""
    done = (await make_changes(ctx, [change]))[0]
    ctx.note(size=done.size, sha256=done.sha256, created=done.action == "created")
    return Written(path=done.path.shown, size=done.size, sha256=done.sha256 or "", created=done.action == "created")


def given_content(ctx: Context, input: ContentInput) -> Content:
    """The bytes to write: those of the request, or those that come beside it."""
    return streamed(ctx, input.content) if input.encoding == "stream" else content_of(input)


def content_of(input: ContentInput) -> Content:
    """The bytes of the request, in pieces where they are many. Raises InvalidRequest for text that has no bytes."""
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
