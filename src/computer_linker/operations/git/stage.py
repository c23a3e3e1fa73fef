"""git.stage: put changes into the index."""

from typing import Annotated

from pydantic import Field

from computer_linker.model.base import Model
from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect
from computer_linker.providers.git.run import Git, GitRun
from computer_linker.providers.git.staging import Staged, stage
from computer_linker.providers.held import guarded
from computer_linker.registry import Context, Example, operation


class StageInput(Model):
    paths: Annotated[
        list[str], Field(min_length=1, max_length=1000, description="Files or folders; plain names, no patterns.")
    ]


class StagedPaths(Model):
    staged: Annotated[list[str], Field(description="Every file that was staged.")]


@operation(
    "git.stage",
    needs={Capability.GIT_WRITE},
    effect=Effect.CHANGE,
    examples=[Example("Stage one file.", {"target": ".", "input": {"paths": ["notes.txt"]}}, runs=False)],
)
async def git_stage(ctx: Context, input: StageInput, target: str = ".") -> StagedPaths:
    """Stage changes below the given paths, deletions included. Sensitive files and content filters are left alone."""
    paths = [ctx.path(path) for path in input.paths]

    def work(run: GitRun) -> Staged:
        return stage(run, [run.repository.from_top(path) for path in paths])

    found = await ctx.use(Git).within(guarded(ctx.path(target), ctx.services.home), work)
    if found.hidden:
        ctx.warn(f"{found.hidden} files that this scope does not show were left out.")
    if found.nested:
        ctx.warn(f"{found.nested} folders that are repositories of their own were left out.")
    ctx.effect = ("confirmed" if found.is_confirmed else "partial") if found.paths else "suspected_noop"
    ctx.note(files=len(found.paths))
    return StagedPaths(staged=found.paths)
