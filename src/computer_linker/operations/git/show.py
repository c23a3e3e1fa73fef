"""git.show: one commit and its patch."""

from typing import Annotated

from pydantic import Field

from computer_linker.errors import NotFound
from computer_linker.operations.git.diff import DiffFile, listed
from computer_linker.providers.git.diff import Diff, diff
from computer_linker.providers.git.log import EMPTY_TREES, Commit, commit_hash, message, one
from computer_linker.providers.git.run import Git, GitRun
from computer_linker.providers.held import guarded
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes


class ShowInput(Model):
    ref: Annotated[str, Field(min_length=1, max_length=256, description="A branch, a tag, a hash, HEAD~2.")]
    paths: Annotated[list[str], Field(max_length=500, description="Only these files or folders.")] = []


class ShowOptions(Model):
    max_bytes: Annotated[int, Field(gt=0, le=2_000_000)] = 200_000
    context_lines: Annotated[int, Field(ge=0, le=100)] = 3


class ShownCommit(Model):
    hash: str
    parents: list[str]
    author: str
    email: str
    date: str
    subject: str
    body: str


class GitShow(Model):
    commit: ShownCommit
    diff: Annotated[str, Field(description="Against the first parent.")]
    truncated: bool
    files: list[DiffFile]


@operation(
    "git.show",
    did="read a commit of",
    needs={Capability.GIT_READ},
    effect=Effect.OBSERVE,
    text=shapes.COMMIT,
    examples=[Example("The last commit.", {"target": ".", "input": {"ref": "HEAD"}}, runs=False)],
)
async def git_show(ctx: Context, input: ShowInput, target: str = ".", options: ShowOptions = ShowOptions()) -> GitShow:
    """Show a commit with its patch, limited to a folder. Sensitive files are left out."""
    paths = [ctx.path(path) for path in input.paths]

    def work(run: GitRun) -> tuple[Commit, str, Diff]:
        commit = one(run, commit_hash(run, input.ref))
        base = commit.parents[0] if commit.parents else EMPTY_TREES[len(commit.hash)]
        specs = [run.repository.from_top(path) for path in paths]
        patch = diff(run, [base, commit.hash], specs, max_bytes=options.max_bytes, context=options.context_lines)
        if run.repository.is_part and not patch.files:
            raise NotFound("The commit changes nothing in this scope.", ref=input.ref)
        return commit, message(run, commit.hash), patch

    commit, body, patch = await ctx.use(Git).within(guarded(ctx.path(target), ctx.services.home), work)
    ctx.note(files=len(patch.files), bytes=len(patch.patch))
    return GitShow(
        commit=ShownCommit(
            hash=commit.hash,
            parents=commit.parents,
            author=commit.author,
            email=commit.email,
            date=commit.date,
            subject=commit.subject,
            body=body,
        ),
        diff=patch.patch,
        truncated=patch.is_cut,
        files=listed(patch),
    )
