"""file.mkdir: make a folder."""

from typing import Annotated

from pydantic import Field

from computer_linker.computer.facets.files import MakeFolder
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class MkdirOptions(Model):
    parents: Annotated[bool, Field(description="Make the folders above it that are missing.")] = False


class MadeFolder(Model):
    path: str
    created: Annotated[bool, Field(description="False when the folder was there before.")]


@operation(
    "file.mkdir",
    did="made the folder",
    needs={Capability.FS_WRITE},
    effect=Effect.CHANGE,
    shows="changes",
    examples=[Example("Make a folder and those above it.", {"target": "docs/deep", "options": {"parents": True}})],
)
async def file_mkdir(ctx: Context, target: str, options: MkdirOptions = MkdirOptions()) -> MadeFolder:
    """Make a folder. One that is already there is left as it is."""
    path = ctx.path(target, for_writing=True)
    done = (await ctx.change([MakeFolder(path, parents=options.parents)]))[0]
    return MadeFolder(path=path.shown, created=done.action == "created")
