"""git.worktree_create: a second work tree of a repository."""

from computer_linker.operations.git.preview import WorktreeInput, show_worktree
from computer_linker.operations.git.worktree_list import WorktreeEntry
from computer_linker.providers.git.run import Git, GitRun
from computer_linker.providers.git.worktrees import Worktree, create, worktrees
from computer_linker.providers.held import guarded
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class WorktreeCreated(Model):
    worktrees: list[WorktreeEntry]


@operation(
    "git.worktree_create",
    did="made a worktree of",
    needs={Capability.GIT_WRITE, Capability.FS_WRITE},
    effect=Effect.CHANGE,
    shows=show_worktree,
    examples=[
        Example("A tree for a fix.", {"target": ".", "input": {"path": "trees/fix", "branch": "fix"}}, runs=False)
    ],
)
async def git_worktree_create(ctx: Context, input: WorktreeInput, target: str = ".") -> WorktreeCreated:
    """Make a work tree inside the scope, on a branch of its own. No hook and no filter runs."""
    path = ctx.path(input.path, for_writing=True)

    def work(run: GitRun) -> tuple[bool, list[Worktree]]:
        is_there = create(run, path, input.branch)
        return is_there, worktrees(run)[0]

    is_there, found = await ctx.use(Git).within(guarded(ctx.path(target), ctx.services.home), work)
    ctx.effect = "confirmed" if is_there else "partial"
    ctx.note(worktrees=len(found))
    return WorktreeCreated(
        worktrees=[
            WorktreeEntry(path=tree.path, head=tree.head, branch=tree.branch, locked=tree.is_locked) for tree in found
        ]
    )
