"""file.create: a new file, never over an old one."""

from typing import Annotated

from pydantic import Field

from computer_linker.computer.facets.files import Write
from computer_linker.operations.file.changing import ContentInput, Written, file_path, given_content, write_content
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class CreateOptions(Model):
    create_parents: Annotated[bool, Field(description="Make the folders above it that are missing.")] = False


@operation(
    "file.create",
    did="created",
    needs={Capability.FS_WRITE},
    effect=Effect.CHANGE,
    shows="changes",
    examples=[
        Example(
            "Make a new file in a new folder.",
            {"target": "docs/new.txt", "input": {"content": "New\n"}, "options": {"createParents": True}},
        )
    ],
)
async def file_create(
    ctx: Context, target: str, input: ContentInput, options: CreateOptions = CreateOptions()
) -> Written:
    """Make a new file. Fails with `already_exists` when the name is taken, also by a link that leads nowhere."""
    path = file_path(ctx, target)
    change = Write(path, given_content(ctx, input), must_be_new=True, create_parents=options.create_parents)
    return await write_content(ctx, change)
