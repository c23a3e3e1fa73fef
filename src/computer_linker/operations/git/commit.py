"""git.commit: make a commit of what is staged."""

from typing import Annotated, Any

from pydantic import Field

from computer_linker.errors import (
    Conflict,
    InvalidRequest,
    LinkError,
    PermissionDenied,
    ProviderUnavailable,
    wire_codes,
)
from computer_linker.model.envelope import Call
from computer_linker.model.paths import RootedPath
from computer_linker.operations.git.preview import show_staged
from computer_linker.providers.git.commits import Committed, Hooks, commit, draft, find_hooks, may_have_hooks
from computer_linker.providers.git.run import Git, GitRun
from computer_linker.providers.held import guarded
from computer_linker.providers.sandbox.sandbox import Sandbox
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes


class CommitInput(Model):
    message: Annotated[str, Field(min_length=1, max_length=100_000)]


class CommitOptions(Model):
    hooks: Annotated[
        bool, Field(description="Run pre-commit, commit-msg and post-commit as commands inside the sandbox.")
    ] = False


class CommitMade(Model):
    hash: str
    files: list[str]
    hooks: Annotated[bool, Field(description="True when a hook of the repository ran.")]


@operation(
    "git.commit",
    did="committed {these}",
    needs={Capability.GIT_WRITE},
    effect=Effect.CHANGE,
    deadline_s=600,
    awaits_intent=True,
    shows=show_staged,
    text=shapes.COMMITTED,
    examples=[Example("Commit what is staged.", {"target": ".", "input": {"message": "Fix the typo"}}, runs=False)],
)
async def git_commit(
    ctx: Context, input: CommitInput, target: str = ".", options: CommitOptions = CommitOptions()
) -> CommitMade:
    """Commit what is staged. Nothing is signed, and the repository's hooks are off unless asked for.

    With `hooks` they run before and after as commands of the scope: checked, sandboxed and recorded like `command.run`. They can
    refuse the commit and read its message, but cannot change the message or the index.
    """
    if not input.message.strip() or "\0" in input.message:
        raise InvalidRequest("A commit message is a text that is not blank.", field="message")
    folder = guarded(ctx.path(target), ctx.services.home)
    hooks = await _hooks(ctx, folder, input.message) if options.hooks else None
    if hooks is not None:
        await ctx.durable_intent()
        await _run_hook(ctx, hooks, "pre-commit")
        await _run_hook(ctx, hooks, "commit-msg", hooks.message)
    # Also after the hooks, which may run long: what is committed must be what a person was shown.
    await ctx.durable_intent()
    made, has_hooks = await ctx.use(Git).within(folder, lambda run: (commit(run, input.message), may_have_hooks(run)))
    # Reported before the last hook runs: the commit stands whatever that hook does.
    ctx.effect = "confirmed" if made.is_confirmed else "partial"
    ctx.note(files=len(made.paths), path=made.paths[0] if made.paths else None, hash=made.hash)
    if hooks is not None:
        await _run_last_hook(ctx, hooks)
    _warn(ctx, made, left_out_hooks=hooks is None and has_hooks)
    return CommitMade(hash=made.hash, files=made.paths, hooks=hooks is not None and bool(hooks.paths))


async def _hooks(ctx: Context, folder: RootedPath, message: str) -> Hooks:
    """The hooks, if there is a sandbox to run them in."""
    if ctx.scope.policy.sandbox == "off":
        raise PermissionDenied("Hooks run only inside the command sandbox, which is off in this scope.", rule="sandbox")
    if not (await ctx.use(Sandbox).probe()).holds:
        raise ProviderUnavailable("Hooks run only inside the command sandbox, and this machine has none.")

    def work(run: GitRun) -> Hooks:
        draft(run)
        return find_hooks(run, message)

    return await ctx.use(Git).within(folder, work)


async def _run_hook(ctx: Context, hooks: Hooks, name: str, *arguments: str) -> None:
    """Run one hook as a command through the dispatcher. Raises when it is refused, or rejects the commit."""
    if name not in hooks.paths:
        return
    given = {"command": [f"./{hooks.paths[name]}", *arguments]}
    options = {"timeoutSeconds": 300, "maxOutputBytes": 20_000}
    reply = await ctx.dispatch(Call(ctx.scope.id, "command.run", hooks.top, given, options))
    if not reply.ok:
        raise _failure(name, reply.envelope["error"])
    outcome = reply.envelope["data"]
    if outcome.timed_out or outcome.exit_code != 0:
        raise Conflict(
            f"The repository's {name} hook refused the commit.",
            hook=name,
            exitCode=outcome.exit_code,
            output=(outcome.stdout + outcome.stderr)[-2000:],
        )


async def _run_last_hook(ctx: Context, hooks: Hooks) -> None:
    try:
        await _run_hook(ctx, hooks, "post-commit")
    except LinkError as error:
        ctx.warn(f"The commit was made; afterwards: {error.message}")


def _failure(name: str, error: dict[str, Any]) -> LinkError:
    return wire_codes()[error["code"]](f"The repository's {name} hook could not be run: {error['message']}", hook=name)


def _warn(ctx: Context, made: Committed, *, left_out_hooks: bool) -> None:
    if made.invented_author:
        ctx.warn("Git knows no name or address for you here, so the account's name was used.")
    if made.hidden:
        ctx.warn(f"The commit has {made.hidden} files that this scope does not show.")
    if left_out_hooks:
        ctx.warn("The repository's hooks were not run.")
