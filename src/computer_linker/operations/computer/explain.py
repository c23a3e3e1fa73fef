"""computer.explain: would this operation be allowed here, and if not, what is missing."""

from typing import Annotated, Any

from pydantic import Field

from computer_linker.errors import LinkError
from computer_linker.policy.engine import FolderAccess, folder_access, judge
from computer_linker.registry import Capability, Context, Effect, Example, Model, Operation, operation
from computer_linker.registry.catalog import Catalog

_SEEN: dict[FolderAccess, str] = {
    "writable": "",
    "read-only": " What it starts sees the scope's folders read-only, for fs:write is missing.",
    "hidden": " What it starts sees none of the scope's folders (they are hidden), for fs:read is missing.",
}
_UNDO = {
    "direct": " file.undo of its operation takes back what it changes in the scope's folders, where these are small or `undo` is "
    "true; nothing takes back what it does over the network, in other folders, or by services.",
    "view": " It runs on a view: view.keep puts its changes in place. What it does over the network is not on the view.",
    "ask": " It runs on a view: a person keeps or drops its changes. What it does over the network is not on the view.",
}


class ExplainInput(Model):
    op: Annotated[str, Field(min_length=1, max_length=64)]
    target: Any = None
    input: dict[str, Any] | None = None
    options: dict[str, Any] | None = None


class Explanation(Model):
    allowed: Annotated[bool, Field(description="False when the call would be refused as it stands.")]
    decision: Annotated[str, Field(description="allow, ask (a person must say yes) or deny.")]
    reason: str
    needs: list[str]
    missing: list[str]
    boundary: Annotated[
        str, Field(description="What holds the operation: the kernel for paths, a sandbox for commands.")
    ]


@operation(
    "computer.explain",
    did="asked what is allowed[: {op}]",
    effect=Effect.OBSERVE,
    on="any",
    examples=[Example("May I write this file?", {"input": {"op": "file.write", "target": "notes.txt"}})],
)
async def computer_explain(ctx: Context, input: ExplainInput) -> Explanation:
    """Say whether an operation would be allowed in this scope, without doing it."""
    wanted = ctx.services.use(Catalog).find(input.op)
    verdict = judge(ctx.scope, wanted, ctx.principal)
    decision, reason = verdict.decision, verdict.reason
    if decision != "deny":
        problem = _refusal(ctx, wanted, input) or await _command_refusal(ctx, wanted, input)
        if problem is not None:
            decision, reason = "deny", problem
        elif Capability.COMMAND_RUN in wanted.needs | wanted.needs_any:
            access = folder_access(ctx.principal, ctx.scope)
            reason += _SEEN[access] + (_UNDO[ctx.scope.policy.outcome] if access == "writable" else "")
    return Explanation(
        allowed=decision == "allow",
        decision=decision,
        reason=reason,
        needs=verdict.needs,
        missing=verdict.missing,
        boundary=wanted.boundary,
    )


async def _command_refusal(ctx: Context, wanted: Operation, asked: ExplainInput) -> str | None:
    """Why the scope's command policy would refuse; the command is resolved and checked, and not started."""
    if wanted.name not in ("command.run", "command.start") or not asked.input:
        return None
    from computer_linker.providers.processes.prepare import Preparation
    from computer_linker.providers.processes.request import request_of

    try:
        given = wanted.parse(asked.target, asked.input, asked.options)
        request = request_of(ctx, asked.target or ".", given["input"].command, given["input"].env)
    except LinkError as error:
        return error.message
    return await ctx.use(Preparation).why_refused(request)


def _refusal(ctx: Context, wanted: Operation, asked: ExplainInput) -> str | None:
    """Why the request itself would be refused, by the checks without side effects."""
    reason = wanted.why_absent(ctx.computer)
    if reason is not None:
        return reason
    try:
        # Without any part of a request the question is whether the operation may be used at all.
        is_bare = asked.target is None and asked.options is None and "input" not in wanted.parameters
        if asked.input is not None or not (is_bare or "input" in wanted.parameters):
            wanted.parse(asked.target, asked.input, asked.options)
        if wanted.on == "folder" and isinstance(asked.target, str) and wanted.boundary == "path-enforced":
            ctx.path(asked.target, for_writing=wanted.effect is not Effect.OBSERVE)
    except LinkError as error:
        return error.message
    return None
