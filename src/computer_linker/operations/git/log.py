"""git.log: the latest commits."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from computer_linker.providers.git.log import Commit, commit_hash, log
from computer_linker.providers.git.run import Git, GitRun
from computer_linker.providers.held import guarded
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes


class LogInput(Model):
    paths: Annotated[
        list[str], Field(max_length=500, description="Only commits that touch these files or folders.")
    ] = []


class LogOptions(Model):
    limit: Annotated[int, Field(gt=0, le=1000)] = 20
    ref: Annotated[str | None, Field(max_length=256, description="Start here instead of at the head.")] = None


class LoggedCommit(TypedDict):
    hash: str
    author: str
    date: str
    subject: str


class GitLog(Model):
    commits: list[LoggedCommit]


@operation(
    "git.log",
    did="read the git log of",
    needs={Capability.GIT_READ},
    effect=Effect.OBSERVE,
    text=shapes.COMMITS,
    examples=[Example("The last five commits.", {"target": ".", "options": {"limit": 5}}, runs=False)],
)
async def git_log(
    ctx: Context, target: str = ".", input: LogInput = LogInput(), options: LogOptions = LogOptions()
) -> GitLog:
    """List the latest commits that touch a folder, newest first."""
    paths = [ctx.path(path) for path in input.paths]

    def work(run: GitRun) -> list[Commit]:
        start = None if options.ref is None else commit_hash(run, options.ref)
        return log(run, start, [run.repository.from_top(path) for path in paths], options.limit)

    commits = await ctx.use(Git).within(guarded(ctx.path(target), ctx.services.home), work)
    ctx.note(commits=len(commits))
    return GitLog(
        commits=[
            LoggedCommit(hash=commit.hash, author=commit.author, date=commit.date, subject=commit.subject)
            for commit in commits
        ]
    )
