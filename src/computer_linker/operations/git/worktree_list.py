"""git.worktree_list: the work trees of a repository."""

from typing_extensions import TypedDict

from computer_linker.providers.git.run import Git
from computer_linker.providers.git.worktrees import worktrees
from computer_linker.providers.held import guarded
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class WorktreeEntry(TypedDict):
    path: str
    head: str | None
    branch: str | None
    locked: bool


class WorktreeList(Model):
    worktrees: list[WorktreeEntry]


@operation(
    "git.worktree_list",
    did="listed worktrees of",
    needs={Capability.GIT_READ},
    effect=Effect.OBSERVE,
    examples=[Example("All work trees.", {"target": "."}, runs=False)],
)
async def git_worktree_list(ctx: Context, target: str = ".") -> WorktreeList:
    """List the repository's work trees that lie in this scope."""
    found, outside = await ctx.use(Git).within(guarded(ctx.path(target), ctx.services.home), worktrees)
    if outside:
        ctx.warn(f"{outside} work trees lie outside this scope.")
    return WorktreeList(
        worktrees=[
            WorktreeEntry(path=tree.path, head=tree.head, branch=tree.branch, locked=tree.is_locked) for tree in found
        ]
    )
