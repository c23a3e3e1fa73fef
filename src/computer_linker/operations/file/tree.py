"""file.tree: everything beneath a folder."""

from typing import Annotated

from pydantic import Field

from computer_linker.computer.facets.files import TreeEntry
from computer_linker.computer.facets.lines import MAX_REPLY
from computer_linker.model.base import Model
from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect
from computer_linker.registry import Context, Example, operation, shapes

_MAX_DEPTH = 64
_MAX_ENTRIES = 120_000


class TreeOptions(Model):
    max_depth: Annotated[
        int, Field(gt=0, description="Levels below the target; at most 64, more is lowered to that.")
    ] = 3
    max_entries: Annotated[int, Field(gt=0, description="At most 120,000; more is lowered to that.")] = 2000
    gitignore: Annotated[bool, Field(description="Leave out what .gitignore files ignore, and .git itself.")] = True


class TreeEntries(Model):
    entries: Annotated[
        list[TreeEntry], Field(description="Level by level, by name inside a folder. Links are not followed.")
    ]
    truncated: bool


@operation(
    "file.tree",
    needs={Capability.FS_READ},
    effect=Effect.OBSERVE,
    text=shapes.TREE,
    examples=[Example("An overview of the project.", {"target": ".", "options": {"maxDepth": 2}})],
)
async def file_tree(ctx: Context, target: str = ".", options: TreeOptions = TreeOptions()) -> TreeEntries:
    """The files and folders beneath a folder, upper levels first, so that a cut tree still shows the whole top.

    Folders that usually hold secrets are named and not entered; names the scope's policy denies are left out.
    """
    tree = await ctx.computer.files.tree(
        ctx.path(target),
        max_depth=min(options.max_depth, _MAX_DEPTH),
        max_entries=min(options.max_entries, _MAX_ENTRIES),
        gitignore=options.gitignore,
        max_bytes=MAX_REPLY - 200_000,
    )
    ctx.warnings.extend(tree.warnings)
    ctx.note(entries=len(tree.entries))
    return TreeEntries.model_construct(entries=tree.entries, truncated=tree.is_truncated)
