"""file.read_many: several files in one request."""

from typing import Annotated, Any

from pydantic import Field

from computer_linker.computer.facets.lines import MAX_REPLY, wire_size
from computer_linker.errors import LinkError
from computer_linker.model.envelope import failure_of
from computer_linker.operations.file.read import MAX_BYTES, Encoding, ReadOptions, read_text, window_of
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes


class ReadManyInput(Model):
    paths: Annotated[list[str], Field(min_length=1, max_length=200)]


class ReadManyOptions(Model):
    max_bytes: Annotated[int, Field(gt=0, description="Of each file.")] = 65_536
    max_total_bytes: Annotated[int, Field(gt=0, description="Of all files; at most 7,000,000.")] = 1_000_000
    encoding: Encoding = "utf8"


class ManyFiles(Model):
    files: Annotated[
        list[dict[str, Any]], Field(description="In order: as file.read answers, or {path, error} for one that failed.")
    ]


@operation(
    "file.read_many",
    did="read several files[: {these}]",
    needs={Capability.FS_READ},
    effect=Effect.OBSERVE,
    text=shapes.PAGES,
    examples=[Example("Read two files.", {"input": {"paths": ["notes.txt", "missing.txt"]}})],
)
async def file_read_many(ctx: Context, input: ReadManyInput, options: ReadManyOptions = ReadManyOptions()) -> ManyFiles:
    """Read several files. One that cannot be read gets its own error; the others are read all the same."""
    left = min(options.max_total_bytes, 7_000_000)
    room = MAX_REPLY - 400_000
    files: list[dict[str, Any]] = []
    for target in input.paths:
        try:
            path = ctx.path(target)
            wanted = ReadOptions(max_bytes=min(options.max_bytes, MAX_BYTES, max(left, 1)), encoding=options.encoding)
            found = await read_text(ctx, path, window_of(wanted), max(room, 8))
        except LinkError as error:
            failed = failure_of(error.code, error.message, retryable=error.retryable, details=error.details)
            files.append({"path": target, "error": failed})
            continue
        content = found.content.encode("utf-8", "replace")
        left -= len(content)
        room -= wire_size(content) + 600
        files.append(found.to_wire())
    ctx.note(path=input.paths[0], files=len(files), failed=sum("error" in file for file in files))
    return ManyFiles.model_construct(files=files)
