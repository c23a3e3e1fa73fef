"""git.unstage: take changes out of the index."""

from typing import Annotated

from pydantic import Field

from computer_linker.operations.git.preview import PathsInput, change_index, show_unstaging
from computer_linker.providers.git.staging import unstage
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class UnstagedPaths(Model):
    staged: Annotated[list[str], Field(description="Every file that was unstaged.")]


@operation(
    "git.unstage",
    did="unstaged {these}",
    needs={Capability.GIT_WRITE},
    effect=Effect.CHANGE,
    shows=show_unstaging,
    examples=[Example("Unstage one file.", {"target": ".", "input": {"paths": ["notes.txt"]}}, runs=False)],
)
async def git_unstage(ctx: Context, input: PathsInput, target: str = ".") -> UnstagedPaths:
    """Take staged changes below the given paths out of the index again. Files stay as they are."""
    return UnstagedPaths(staged=await change_index(ctx, target, input, unstage))
