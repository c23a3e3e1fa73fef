"""git.diff: what changed, as a patch."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from computer_linker.providers.git.diff import Diff, diff
from computer_linker.providers.git.log import commit_hash
from computer_linker.providers.git.run import Git, GitRun
from computer_linker.providers.held import guarded
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes


class DiffInput(Model):
    paths: Annotated[
        list[str], Field(max_length=500, description="Only these files or folders; plain names, no patterns.")
    ] = []


class DiffOptions(Model):
    staged: Annotated[bool, Field(description="What is staged, against the last commit.")] = False
    base: Annotated[str | None, Field(max_length=256, description="Compare with this commit instead of the index.")] = (
        None
    )
    max_bytes: Annotated[int, Field(gt=0, le=2_000_000)] = 200_000
    context_lines: Annotated[int, Field(ge=0, le=100)] = 3


class DiffFile(TypedDict):
    path: str
    action: str
    renamedFrom: str | None


class GitDiff(Model):
    diff: str
    truncated: Annotated[bool, Field(description="True when the patch has more than was returned.")]
    files: Annotated[list[DiffFile], Field(description="Every changed file, also of a truncated patch.")]


@operation(
    "git.diff",
    did="read the git diff of",
    needs={Capability.GIT_READ},
    effect=Effect.OBSERVE,
    text=shapes.DIFF,
    examples=[Example("Unstaged changes.", {"target": "."}, runs=False)],
)
async def git_diff(
    ctx: Context, target: str = ".", input: DiffInput = DiffInput(), options: DiffOptions = DiffOptions()
) -> GitDiff:
    """Show changes of a folder as a patch: unstaged, staged, or since a commit. Sensitive files are left out."""
    paths = [ctx.path(path) for path in input.paths]

    def work(run: GitRun) -> Diff:
        ends = ["--cached"] if options.staged else []
        if options.base is not None:
            ends.append(commit_hash(run, options.base))
        specs = [run.repository.from_top(path) for path in paths]
        return diff(run, ends, specs, max_bytes=options.max_bytes, context=options.context_lines)

    found = await ctx.use(Git).within(guarded(ctx.path(target), ctx.services.home), work)
    if found.hidden:
        ctx.warn(f"{found.hidden} changed files are not shown in this scope.")
    ctx.note(files=len(found.files), bytes=len(found.patch))
    return GitDiff(diff=found.patch, truncated=found.is_cut, files=listed(found))


def listed(found: Diff) -> list[DiffFile]:
    """The files of a diff in wire form."""
    return [DiffFile(path=file.path, action=file.action, renamedFrom=file.renamed_from) for file in found.files]
