"""The approval preview of an act on a running process: its program and what it printed last, because a handle means nothing."""

from dataclasses import replace

from computer_linker.approvals.request import Preview
from computer_linker.errors import Conflict
from computer_linker.operations.command.list import ListedProcess
from computer_linker.policy.digest import digest_of_parts
from computer_linker.providers.processes.records import Record
from computer_linker.providers.processes.table import ProcessTable
from computer_linker.registry import Context

_MAX_BYTES, _MAX_LINES = 4096, 10


async def show_process(ctx: Context, target: str, input: object = None, options: object = None) -> Preview:
    """The process, or the agent's session. The approval is bound to it while it runs."""
    from computer_linker.operations.command.sessions import listed_session, session_of

    session = session_of(ctx, target)
    known: ListedProcess | Record
    printed: list[str] = []
    if session is not None:
        known = listed_session(session)
    else:
        managed = ctx.use(ProcessTable).find(target, ctx.principal, ctx.scope.id)
        known = managed.record
        printed = managed.printed(max(0, managed.end - _MAX_BYTES), _MAX_BYTES).decode("utf-8", "replace").splitlines()
    lines = [
        f"the process `{known.command_preview}`, {known.status}, started {known.started_at}, held by {known.boundary}"
    ]
    lines += ["its last output:", *(f"| {line}" for line in printed[-_MAX_LINES:])] if printed else []
    return Preview(tuple(lines), {"process": digest_of_parts(target, known.status, known.started_at)})


async def show_typed(ctx: Context, target: str, input: object = None, options: object = None) -> Preview:
    """The process that would be typed into. Refused where it takes no more input."""
    about = await show_process(ctx, target)
    try:
        ctx.use(ProcessTable).find(target, ctx.principal, ctx.scope.id).check_input()
    except Conflict as error:
        return replace(about, obstacle=error)
    return about
