"""file.copy: a second file or folder with the same content."""

from computer_linker.computer.facets.files import Copy
from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect
from computer_linker.operations.file.changing import make_changes
from computer_linker.operations.file.move import Moved, MoveInput, MoveOptions
from computer_linker.registry import Context, Example, operation


@operation(
    "file.copy",
    needs={Capability.FS_READ, Capability.FS_WRITE},
    effect=Effect.CHANGE,
    awaits_intent=True,
    examples=[Example("Copy a file.", {"target": "notes.txt", "input": {"destination": "copy.txt"}})],
)
async def file_copy(ctx: Context, target: str, input: MoveInput, options: MoveOptions = MoveOptions()) -> Moved:
    """Copy a file or a whole folder.

    Links and special files in a folder are left out, and so is what usually holds a secret; a warning says how many.
    """
    source = ctx.path(target)
    destination = ctx.path(input.destination, for_writing=True)
    change = Copy(source, destination, overwrite=options.overwrite, create_parents=options.create_parents)
    done = (await make_changes(ctx, [change]))[0]
    ctx.note(entries=done.entries, size=done.size)
    return Moved(from_=source.shown, to=destination.shown)
