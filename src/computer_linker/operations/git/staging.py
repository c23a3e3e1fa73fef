"""What git.stage and git.unstage share: plain paths as input, and the read-back of the index."""

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from computer_linker.model.base import Model
from computer_linker.providers.git.run import Git, GitRun
from computer_linker.providers.git.staging import Staged
from computer_linker.providers.held import guarded
from computer_linker.registry import Context


class PathsInput(Model):
    paths: Annotated[
        list[str], Field(min_length=1, max_length=1000, description="Files or folders; plain names, no patterns.")
    ]


class WorktreeInput(Model):
    path: Annotated[str, Field(min_length=1, description="Where to make it; must not exist.")]
    branch: Annotated[
        str, Field(min_length=1, max_length=200, description="Checked out there; made from the head if new.")
    ]


async def change_index(
    ctx: Context, target: str, input: PathsInput, change: Callable[[GitRun, list[tuple[str, ...]]], Staged]
) -> list[str]:
    """Stage or unstage the paths; returns the files this was done with."""
    paths = [ctx.path(path) for path in input.paths]

    def work(run: GitRun) -> Staged:
        return change(run, [run.repository.from_top(path) for path in paths])

    found = await ctx.use(Git).within(guarded(ctx.path(target), ctx.services.home), work)
    if found.hidden:
        ctx.warn(f"{found.hidden} files that this scope does not show were left out.")
    if found.nested:
        ctx.warn(f"{found.nested} folders that are repositories of their own were left out.")
    ctx.effect = ("confirmed" if found.is_confirmed else "partial") if found.paths else "suspected_noop"
    ctx.note(files=len(found.paths))
    return found.paths
