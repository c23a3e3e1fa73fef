"""file.write: make a file hold exactly this."""

from typing import Annotated

from pydantic import Field

from computer_linker.computer.facets.files import Write
from computer_linker.errors import InvalidRequest
from computer_linker.operations.file.changing import (
    ContentInput,
    Sha256,
    Written,
    file_path,
    given_content,
    write_content,
)
from computer_linker.providers.charsets import Charset, named
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class WriteOptions(Model):
    create_parents: Annotated[bool, Field(description="Make the folders above it that are missing.")] = False
    if_sha256: Annotated[
        Sha256 | None, Field(description="Write only while the file still has this digest; else `conflict`.")
    ] = None
    append: Annotated[bool, Field(description="Put the content after what is there.")] = False
    charset: Annotated[
        str | None,
        Field(max_length=40, description="Write the text in this charset, as file.read named it; UTF-8 when left out."),
    ] = None


@operation(
    "file.write",
    did="wrote",
    needs={Capability.FS_WRITE},
    effect=Effect.CHANGE,
    shows="changes",
    destructive=True,
    examples=[Example("Write a file.", {"target": "notes.txt", "input": {"content": "Hello\n"}})],
)
async def file_write(ctx: Context, target: str, input: ContentInput, options: WriteOptions = WriteOptions()) -> Written:
    """Write a file, new or not. The old content stays whole until the new one is in place; file.undo takes it back."""
    change = Write(
        file_path(ctx, target),
        given_content(ctx, input) if options.charset is None else _in_charset(input, options.charset, options.append),
        append=options.append,
        create_parents=options.create_parents,
        if_sha256=options.if_sha256,
    )
    return await write_content(ctx, change)


def _in_charset(input: ContentInput, name: str, append: bool) -> bytes:
    """The text in another charset. A byte order mark is written once, at the file's start."""
    if input.encoding != "utf8":
        raise InvalidRequest("`charset` is for text; base64 gives the bytes themselves.", field="options.charset")
    charset = named(name)
    return (Charset(charset.codec) if append else charset).encode(input.content)
