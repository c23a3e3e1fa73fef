"""command.elevate: run one command as the superuser, outside the sandbox, once the owner said yes to exactly it."""

import os
import shlex
from typing import Annotated

from pydantic import Field

from computer_linker.approvals.request import Preview
from computer_linker.errors import PermissionDenied, ProviderUnavailable
from computer_linker.operations.command.preview import ONLY, UNREAD, misleading, named_files
from computer_linker.policy.commands import judge_denied
from computer_linker.policy.digest import digest_of_parts
from computer_linker.providers.processes.named import MOST, has_unread_names, left_by_parents, named_in
from computer_linker.providers.processes.prepare import Preparation
from computer_linker.providers.processes.runner import Limits, Runner
from computer_linker.providers.sandbox.boundary import SpawnPlan
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes
from computer_linker.vault.vault import Vault

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ElevateInput(Model):
    command: Annotated[list[str], Field(min_length=1, max_length=200, description="The argv, without `sudo`.")]


class Elevated(Model):
    exit_code: int
    timed_out: bool
    stdout: str
    stderr: str
    truncated: bool


async def _show(ctx: Context, input: ElevateInput, target: str = ".") -> Preview:
    """The exact command, held to its folder and to the files of the scope that it names. Such a yes never stands."""
    _refuse_unless_allowed(ctx, input.command)
    cwd, command = ctx.path(target), input.command
    left = left_by_parents(command, cwd, ctx.scope.roots)
    named = list(dict.fromkeys((*left, *named_in(command, cwd, ctx.scope.roots))))
    prints = await named_files(ctx, named)
    found = await ctx.computer.files.stat(cwd)
    lines = [f"runs as the superuser, outside the sandbox: {shlex.join(command)}", f"in {cwd.shown}", *prints.lines]
    if len(named) > MOST:
        lines.append(f"Not checked beyond {MOST} names.")
    if has_unread_names(command):
        lines.append(UNREAD)
    holds = {**prints.holds, "its folder": digest_of_parts(str(found.device), str(found.inode))}
    return Preview((*lines, ONLY), holds, is_once=True, obstacle=await misleading(ctx, left))


@operation(
    "command.elevate",
    did="ran as the superuser",
    needs={Capability.COMMAND_RUN},
    effect=Effect.CHANGE,
    text=shapes.OUTPUT,
    deadline_s=None,
    destructive=True,
    awaits_intent=True,
    asked_by=lambda _policy: True,
    needs_policy="elevation",
    shows=_show,
    runs=lambda input: ["sudo", *input.command],
    examples=[Example("Install a package.", {"input": {"command": ["apt-get", "install", "-y", "jq"]}}, runs=False)],
)
async def command_elevate(ctx: Context, input: ElevateInput, target: str = ".") -> Elevated:
    """Run one command as the superuser (`sudo -n`) outside the sandbox, in a folder of the scope. A person is asked each time.

    Off unless the scope's policy has `elevation`. `sudo` inside a command of such a scope calls this. The argv is executed as it
    is, with a fixed environment and no standard input.
    """
    _refuse_unless_allowed(ctx, input.command)
    program = ctx.use(Preparation).locate("sudo")
    if program is None:
        raise ProviderUnavailable("There is no sudo on this computer.", remedy="Install sudo.")
    folder = ctx.computer.files.open_folder(ctx.path(target))
    plan = SpawnPlan((program, "-n", "--", *input.command), cwd_fd=folder, closes=[folder], mask=ctx.use(Vault).mask)
    limits = Limits(ctx.scope.policy.max_runtime_seconds, ctx.scope.policy.max_output_bytes)
    ctx.boundary = "none"
    ctx.note(program=os.path.basename(input.command[0]), arguments=len(input.command) - 1)  # noqa: PTH119
    env = {"PATH": _PATH, "LANG": "C.UTF-8"}
    outcome = await ctx.use(Runner).run(plan, env, limits, before_start=ctx.durable_intent)
    ctx.effect = "partial" if outcome.timed_out else "unverifiable"
    ctx.note(exitCode=outcome.exit_code)
    return Elevated(
        exit_code=outcome.exit_code,
        timed_out=outcome.timed_out,
        stdout=outcome.stdout,
        stderr=outcome.stderr,
        truncated=outcome.truncated,
    )


def _refuse_unless_allowed(ctx: Context, command: list[str]) -> None:
    if not ctx.scope.policy.elevation:
        raise PermissionDenied(
            "This scope runs nothing as the superuser. The owner can let it ask: "
            f"computer-linker scope edit {ctx.scope.id} --policy elevation=true",
            rule="elevation",
        )
    judge_denied(ctx.scope.policy, tuple(command), None, ctx.use(Preparation).locate)
