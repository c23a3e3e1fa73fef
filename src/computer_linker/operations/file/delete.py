"""file.delete: take a file or folder away."""

from typing import Annotated

from pydantic import Field

from computer_linker.computer.facets.files import Remove
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes


class DeleteOptions(Model):
    recursive: Annotated[bool, Field(description="Needed to delete a folder, with all that is in it.")] = False


class Deleted(Model):
    path: str
    entries: Annotated[int, Field(description="How many files and folders went.")]


@operation(
    "file.delete",
    did="deleted",
    needs={Capability.FS_WRITE},
    effect=Effect.CHANGE,
    shows="changes",
    text=shapes.DELETED,
    destructive=True,
    examples=[Example("Delete a file.", {"target": "notes.txt"})],
)
async def file_delete(ctx: Context, target: str, options: DeleteOptions = DeleteOptions()) -> Deleted:
    """Delete a file, a link (never what it leads to), or with `recursive` a folder. file.undo brings it back while it is kept.

    A folder that holds a repository (.git), or something the scope's policy denies, is not deleted as a whole.
    """
    path = ctx.path(target, for_writing=True)
    done = (await ctx.change([Remove(path, recursive=options.recursive)]))[0]
    ctx.note(entries=done.entries)
    return Deleted(path=path.shown, entries=done.entries)
