"""git.stage: put changes into the index."""

from typing import Annotated

from pydantic import Field

from computer_linker.operations.git.preview import PathsInput, change_index, show_unstaged
from computer_linker.providers.git.staging import stage
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class StagedPaths(Model):
    staged: Annotated[list[str], Field(description="Every file that was staged.")]


@operation(
    "git.stage",
    did="staged {these}",
    needs={Capability.GIT_WRITE},
    effect=Effect.CHANGE,
    shows=show_unstaged,
    examples=[Example("Stage one file.", {"target": ".", "input": {"paths": ["notes.txt"]}}, runs=False)],
)
async def git_stage(ctx: Context, input: PathsInput, target: str = ".") -> StagedPaths:
    """Stage changes below the given paths, deletions included. Sensitive files and content filters are left alone."""
    return StagedPaths(staged=await change_index(ctx, target, input, stage))
