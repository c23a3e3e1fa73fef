"""file.move: give a file or folder another name."""

from typing import Annotated

from pydantic import Field

from computer_linker.computer.facets.files import Move
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class MoveInput(Model):
    destination: Annotated[str, Field(min_length=1, description="The new path, relative to the scope's root.")]


class MoveOptions(Model):
    overwrite: Annotated[bool, Field(description="Replace a file that has the new name; never a folder.")] = False
    create_parents: Annotated[bool, Field(description="Make the folders above it that are missing.")] = False


class Moved(Model):
    from_: Annotated[str, Field(alias="from")]
    to: str


@operation(
    "file.move",
    did="moved[ {target} to {destination}]",
    needs={Capability.FS_WRITE},
    effect=Effect.CHANGE,
    destructive=True,
    shows="changes",
    examples=[Example("Rename a file.", {"target": "notes.txt", "input": {"destination": "old-notes.txt"}})],
)
async def file_move(ctx: Context, target: str, input: MoveInput, options: MoveOptions = MoveOptions()) -> Moved:
    """Move or rename. A link is moved itself. A folder goes as a whole, unless the scope's rules protect something in it."""
    source = ctx.path(target, for_writing=True)
    destination = ctx.path(input.destination, for_writing=True)
    change = Move(source, destination, overwrite=options.overwrite, create_parents=options.create_parents)
    done = (await ctx.change([change]))[0]
    ctx.note(entries=done.entries)
    return Moved(from_=source.shown, to=destination.shown)
