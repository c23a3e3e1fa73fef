"""file.stat: what the system says of one name."""

from typing import Annotated, Literal

from pydantic import Field

from computer_linker.errors import InvalidRequest
from computer_linker.model.times import shown_ns
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes


class StatOptions(Model):
    hash: Annotated[bool, Field(description="Also digest the whole file.")] = False


class FileFacts(Model):
    path: str
    type: Annotated[
        Literal["file", "directory", "symlink", "other"],
        Field(description="A link is reported as a link; nothing is said of what it leads to."),
    ]
    size: int
    modified_at: str
    mode: Annotated[str, Field(description="The permission bits in octal, such as 0644.")]
    sha256: str | None = None


@operation(
    "file.stat",
    did="looked at",
    needs={Capability.FS_READ},
    effect=Effect.OBSERVE,
    text=shapes.DIGEST,
    examples=[Example("Look at a file before reading it.", {"target": "notes.txt", "options": {"hash": True}})],
)
async def file_stat(ctx: Context, target: str, options: StatOptions = StatOptions()) -> FileFacts:
    """Type, size, time and mode of one name. A link is reported itself, never what it leads to."""
    path = ctx.path(target)
    found = await ctx.computer.files.stat(path)
    sha256 = None
    if options.hash:
        if found.type != "file":
            raise InvalidRequest(f"{path.shown} is not a regular file, so it has no digest.", path=path.shown)
        sha256 = await ctx.computer.files.sha256(path)
    return FileFacts(
        path=path.shown,
        type=found.type,
        size=found.size,
        modified_at=shown_ns(found.modified_ns),
        mode=f"{found.mode:04o}",
        sha256=sha256,
    )
