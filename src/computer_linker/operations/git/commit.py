"""git.commit: make a commit of what is staged."""

from typing import Annotated

from pydantic import Field

from computer_linker.errors import InvalidRequest
from computer_linker.model.base import Model
from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect
from computer_linker.providers.git.commits import commit
from computer_linker.providers.git.run import Git
from computer_linker.providers.held import guarded
from computer_linker.registry import Context, Example, operation


class CommitInput(Model):
    message: Annotated[str, Field(min_length=1, max_length=100_000)]


class CommitOptions(Model):
    hooks: Annotated[bool, Field(description="Run the repository's hooks inside the command sandbox.")] = False


class CommitMade(Model):
    hash: str
    files: list[str]
    hooks: Annotated[bool, Field(description="True when the repository's hooks ran.")]


@operation(
    "git.commit",
    needs={Capability.GIT_WRITE},
    effect=Effect.CHANGE,
    examples=[Example("Commit what is staged.", {"target": ".", "input": {"message": "Fix the typo"}}, runs=False)],
)
async def git_commit(
    ctx: Context, input: CommitInput, target: str = ".", options: CommitOptions = CommitOptions()
) -> CommitMade:
    """Commit what is staged. The repository's hooks are off unless asked for; nothing is signed."""
    if not input.message.strip() or "\0" in input.message:
        raise InvalidRequest("A commit message is a text that is not blank.", field="message")

    made = await ctx.use(Git).within(
        guarded(ctx.path(target), ctx.services.home), lambda run: commit(run, input.message)
    )
    if made.invented_author:
        ctx.warn("Git knows no name or address for you here, so the account's name was used.")
    if made.hidden:
        ctx.warn(f"The commit has {made.hidden} files that this scope does not show.")
    ctx.warn("The repository's hooks were not run.")
    ctx.effect = "confirmed" if made.is_confirmed else "partial"
    ctx.note(files=len(made.paths), hash=made.hash)
    return CommitMade(hash=made.hash, files=made.paths, hooks=False)
