"""The approval preview of a change to a repository: what is staged, or what would be."""

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from computer_linker.approvals.request import Preview
from computer_linker.changes.fingerprints import Fingerprints
from computer_linker.errors import AlreadyExists, LinkError, NotFound
from computer_linker.policy.digest import digest_of_parts
from computer_linker.providers.git.commits import head
from computer_linker.providers.git.run import Git, GitRun
from computer_linker.providers.git.staging import Staged, staged_blobs, unstaged_names
from computer_linker.providers.held import guarded
from computer_linker.registry import Context, Model

# What git.stage and git.unstage share: plain paths as input, and the read-back of the index.


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
    ctx.note(files=len(found.paths), path=found.paths[0] if found.paths else None)
    return found.paths


_SHOWN = 60
_MOST = 500


async def show_staged(ctx: Context, input: object, target: str = ".", options: object = None) -> Preview:
    """The files in the index that differ from the head, each by the blob that would be committed."""

    def work(run: GitRun) -> tuple[str, list[str]]:
        return head(run), staged_blobs(run)

    parent, staged = await ctx.use(Git).within(guarded(ctx.path(target), ctx.services.home), work)
    lines = [f"on {parent[:12] or 'no commit yet'}, with {len(staged)} staged files:", *staged[:_SHOWN]]
    if len(staged) > _SHOWN:
        lines.append(f"… {len(staged) - _SHOWN} more, which are held too")
    holds = {"head": digest_of_parts(parent), "index": digest_of_parts(*staged)}
    return Preview(tuple(lines), holds, paths=(ctx.path(target).shown,))


async def show_unstaged(ctx: Context, input: PathsInput, target: str = ".") -> Preview:
    """The files that would be staged, each by its current content."""
    paths = [ctx.path(path) for path in input.paths]

    def work(run: GitRun) -> tuple[list[str], list[str]]:
        return unstaged_names(run, [run.repository.from_top(path) for path in paths]), staged_blobs(run)

    names, staged = await ctx.use(Git).within(guarded(ctx.path(target), ctx.services.home), work)
    prints = Fingerprints(ctx.computer.files)
    for name in names[:_MOST]:
        try:
            await prints.add_file(ctx.path_from_root(name), "stages", lists_all=True)
        except LinkError:
            prints.lines.append(f"{name}: cannot be looked at")
    if len(names) > _MOST:
        prints.lines.append(f"Not checked beyond {_MOST} files.")
    holds = {**prints.holds, "files": digest_of_parts(*names), "index": digest_of_parts(*staged)}
    return Preview(tuple(prints.lines), holds, paths=tuple(path.shown for path in paths))


async def show_unstaging(ctx: Context, input: PathsInput, target: str = ".") -> Preview:
    """The paths that would be taken out of the index, and the index as it is."""
    paths = [ctx.path(path) for path in input.paths]
    staged = await ctx.use(Git).within(guarded(ctx.path(target), ctx.services.home), staged_blobs)
    lines = tuple(f"takes out of the index: {path.shown}" for path in paths)
    return Preview(lines, {"index": digest_of_parts(*staged)}, paths=tuple(path.shown for path in paths))


async def show_worktree(ctx: Context, input: WorktreeInput, target: str = ".") -> Preview:
    """The folder that a work tree would be made in. Refused where it exists, or where there is no repository."""
    path = ctx.path(input.path, for_writing=True)
    await ctx.use(Git).within(guarded(ctx.path(target), ctx.services.home), head)
    await ctx.computer.files.stat(path.parent)
    lines = (f"makes the work tree {path.shown} on the branch {input.branch}",)
    try:
        await ctx.computer.files.stat(path)
    except NotFound:
        return Preview(lines, paths=(path.shown,))
    return Preview(lines, obstacle=AlreadyExists(f"{path.shown} exists already.", path=path.shown))
