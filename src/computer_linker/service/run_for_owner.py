"""Runs a client's operation for the owner, inside an operation of the owner's."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from computer_linker.approvals.approvals import Answerer, Approvals
from computer_linker.config.schema import Config
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.errors import ExecutionFailed, InvalidRequest, NotFound, UnknownScope, wire_codes
from computer_linker.model.base import Model
from computer_linker.model.envelope import Call
from computer_linker.model.scope import Rights
from computer_linker.policy.engine import find_scope, granting, judge
from computer_linker.registry.catalog import Catalog, find_one
from computer_linker.registry.context import Context

R = TypeVar("R", bound=Model)
_YES_S = 60.0


async def run_for_owner(ctx: Context, call: Call, kind: type[R]) -> R:
    """The result of a client's operation under its own policy and event. Its refusal and effect become this operation's.

    Where the scope asks a person first, the owner's command is that yes, recorded as such.
    """
    op = find_one("computer_linker.operations", call.op)
    assert op is not None, call.op
    # Its own catalogue: with no service running, the dispatcher has only the owner's operation.
    dispatcher = ctx.use(Dispatcher).with_catalog(Catalog({op.name: op}, {op.name: op}))
    reply = await dispatcher.call(await _approved(ctx, call, op), ctx.principal, ctx.report, parent=ctx.operation_id)
    envelope = reply.envelope
    if not reply.ok:
        error = envelope["error"]
        details = error["details"] | {"hint": hint_of(error["details"], call.scope)}
        raise wire_codes().get(error["code"], ExecutionFailed)(f"{error['code']}: {error['message']}", **details)
    ctx.effect = envelope.get("effect")
    ctx.warnings.extend(envelope["warnings"])
    ctx.note(operation=envelope["operationId"])
    data = envelope["data"]
    return data if isinstance(data, kind) else kind.from_wire(data)


async def _approved(ctx: Context, call: Call, op: Rights) -> Call:
    """The call with a token that the owner approved, where its scope asks; else as it is, for the dispatcher to judge."""
    try:
        scope = find_scope(ctx.services.current_config, call.scope, ctx.principal)
    except UnknownScope:
        return call
    if judge(scope, op, ctx.principal).decision != "ask":
        return call
    approvals = ctx.use(Approvals)
    token, asked = await approvals.issue(call, op, scope, ctx.principal, _YES_S)
    approvals.answer(asked.id, "yes", Answerer(ctx.principal, "terminal"), ctx.operation_id)
    return replace(call, confirm=token)


def hint_of(details: Mapping[str, Any], scope: str) -> str:
    """The hint after a refusal, as a command where there is one."""
    similar = details.get("similar")
    if similar:
        return f"did you mean {' or '.join(similar)}?"
    # Another computer's scopes are changed there.
    if "/" not in scope:
        missing = details.get("missing")
        if isinstance(missing, list) and missing:
            return f"to allow it: {granting(scope, missing)}"
        if details.get("rule") == "allowedCommands":
            return f'to allow it: computer-linker scope allow {scope} "PROGRAM *"; the list: computer-linker scope show {scope}'
    if details.get("fields"):
        return f"there are {', '.join(details['fields'])}"
    return str(details.get("hint") or details.get("remedy") or "")


# Selects the scope for evidence: that of a file, or the only one that allows it.


def scope_of_file(config: Config, file: Path, scope: str | None) -> tuple[str, str]:
    """The scope that contains a file, and its path there. The service checks it again."""
    place = file.absolute()
    for one in config.scopes:
        if one.type != "folder" or scope not in (None, one.id):
            continue
        for number, root in enumerate(one.roots):
            if place.is_relative_to(root) or place.resolve().is_relative_to(Path(root).resolve()):
                inner = place if place.is_relative_to(root) else place.resolve()
                below = inner.relative_to(root if place.is_relative_to(root) else Path(root).resolve())
                return one.id, f"@{number}/{below}" if len(one.roots) > 1 else str(below)
    raise NotFound(f"{file} lies in no scope", hint="only files of a scope are kept: computer-linker scope list")


def only_scope(config: Config, scope: str | None, kind: str, needs: tuple[str, ...]) -> str:
    """The scope that was named, or the only one of this kind that allows all of this."""
    if scope is not None:
        return scope
    scopes = config.scopes
    fitting = [one.id for one in scopes if one.type == kind and set(needs) <= {c.value for c in one.granted}]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        of_kind = [one.id for one in scopes if one.type == kind]
        place = f"edit {of_kind[0]}" if of_kind else "add --computer" if kind == "computer" else "add FOLDER"
        wanted = " ".join(f"--allow {one}" for one in needs)
        raise NotFound(f"no {kind} scope allows {' and '.join(needs)}", hint=f"computer-linker scope {place} {wanted}")
    raise InvalidRequest("which scope?", hint=f"--scope {' or '.join(fitting)}")
