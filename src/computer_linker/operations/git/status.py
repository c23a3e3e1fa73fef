"""git.status: the branch and what differs from it."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from computer_linker.providers.git.diff import diff
from computer_linker.providers.git.run import Git, GitRun
from computer_linker.providers.git.status import Status, status
from computer_linker.providers.held import guarded
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

_MAX_DIFF = 200_000


class StatusOptions(Model):
    include_diff: Annotated[bool, Field(description="Add the diff of unstaged changes, up to 200000 bytes.")] = False


class ChangedPath(TypedDict):
    path: str
    index: str
    worktree: str
    renamedFrom: str | None


class Counts(Model):
    staged: int
    unstaged: int
    untracked: int
    conflicts: int
    renamed: int
    ignored: Annotated[int, Field(description="Ignored paths; a folder that is ignored as a whole is one.")]
    insertions: Annotated[int, Field(description="Lines added since the last commit, staged or not, in tracked files.")]
    deletions: int
    hidden: Annotated[int, Field(description="Changed files this scope does not show.")]


class GitStatus(Model):
    branch: Annotated[str | None, Field(description="None when the head is detached.")]
    head: Annotated[str | None, Field(description="None before the first commit.")]
    upstream: str | None
    ahead: int | None
    behind: int | None
    clean: bool
    entries: list[ChangedPath]
    counts: Counts
    truncated: bool
    diff: str | None = None


@operation(
    "git.status",
    did="read the git status of",
    needs={Capability.GIT_READ},
    effect=Effect.OBSERVE,
    text=shapes.STATUS,
    examples=[Example("What has changed here.", {"target": "."}, runs=False)],
    aliases=["git.changes"],
)
async def git_status(ctx: Context, target: str = ".", options: StatusOptions = StatusOptions()) -> GitStatus:
    """Say what differs from the last commit below a folder. Nothing that the repository configures is run."""

    def work(run: GitRun) -> tuple[Status, str | None, tuple[str, ...]]:
        found = status(run)
        patch = diff(run, [], [], max_bytes=_MAX_DIFF, context=3).patch if options.include_diff else None
        return found, patch, run.drivers

    found, patch, drivers = await ctx.use(Git).within(guarded(ctx.path(target), ctx.services.home), work)
    if drivers:
        ctx.warn(f"The repository's content filters are not run: {', '.join(drivers)[:200]}.")
    ctx.note(entries=len(found.entries))
    return _answer(found, patch)


def _answer(found: Status, patch: str | None) -> GitStatus:
    entries = found.entries
    conflicts = sum("U" in (entry.index, entry.worktree) for entry in entries)
    counts = Counts(
        staged=sum(entry.index not in ".?U" for entry in entries),
        unstaged=sum(entry.worktree not in ".?U" for entry in entries),
        untracked=sum(entry.index == "?" for entry in entries),
        conflicts=conflicts,
        renamed=sum(entry.renamed_from is not None for entry in entries),
        ignored=found.ignored,
        insertions=found.insertions,
        deletions=found.deletions,
        hidden=found.hidden,
    )
    return GitStatus(
        branch=found.branch,
        head=found.head,
        upstream=found.upstream,
        ahead=found.ahead,
        behind=found.behind,
        clean=not entries and not found.hidden,
        entries=[
            ChangedPath(path=entry.path, index=entry.index, worktree=entry.worktree, renamedFrom=entry.renamed_from)
            for entry in entries
        ],
        counts=counts,
        truncated=found.is_cut,
        diff=patch,
    )
