"""file.tree: everything beneath a folder."""

import os
from typing import Annotated

from pydantic import Field

from computer_linker.computer.facets.files import TreeEntry
from computer_linker.computer.facets.lines import MAX_REPLY
from computer_linker.providers.search.query import digest_of, from_cursor, to_cursor
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

_MAX_DEPTH = 64
_MAX_ENTRIES = 120_000


class TreeOptions(Model):
    max_depth: Annotated[
        int, Field(gt=0, description="Levels below the target; at most 64, more is lowered to that.")
    ] = 3
    max_entries: Annotated[int, Field(gt=0, description="At most 120,000; more is lowered to that.")] = 2000
    gitignore: Annotated[bool, Field(description="Leave out what .gitignore files ignore, and .git itself.")] = True
    cursor: Annotated[str | None, Field(max_length=16_384, description="`nextCursor` of the page before.")] = None


class TreeEntries(Model):
    entries: Annotated[
        list[TreeEntry], Field(description="Level by level, by name inside a folder. Links are not followed.")
    ]
    truncated: bool
    next_cursor: str | None = None


@operation(
    "file.tree",
    did="listed the tree of",
    needs={Capability.FS_READ},
    effect=Effect.OBSERVE,
    text=shapes.TREE,
    examples=[Example("An overview of the project.", {"target": ".", "options": {"maxDepth": 2}})],
)
async def file_tree(ctx: Context, target: str = ".", options: TreeOptions = TreeOptions()) -> TreeEntries:
    """The files and folders beneath a folder, upper levels first, so that a cut tree still shows the whole top.

    Folders that usually hold secrets are named and not entered; names the scope's policy denies are left out.
    """
    path = ctx.path(target)
    digest = digest_of("tree", path.shown, options.gitignore)
    tree = await ctx.computer.files.tree(
        path,
        max_depth=min(options.max_depth, _MAX_DEPTH),
        max_entries=min(options.max_entries, _MAX_ENTRIES),
        gitignore=options.gitignore,
        max_bytes=MAX_REPLY - 200_000,
        after=_after(options.cursor, digest),
    )
    ctx.warnings.extend(tree.warnings)
    ctx.note(entries=len(tree.entries))
    return TreeEntries.model_construct(
        entries=tree.entries,
        truncated=tree.is_truncated,
        next_cursor=None if tree.last is None else to_cursor((tuple(map(os.fsencode, tree.last)), 0), digest),
    )


def _after(cursor: str | None, digest: str) -> tuple[str, ...] | None:
    position = from_cursor(cursor, digest)
    return None if position is None else tuple(map(os.fsdecode, position[0]))
