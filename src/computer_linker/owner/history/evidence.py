"""What is kept of an operation beside its event: what it replaced, and what its process or agent printed."""

import time
from functools import partial
from pathlib import Path
from typing import Annotated

from anyio import to_thread
from pydantic import Field

from computer_linker.audit.index import HANDLE
from computer_linker.changes.difference import MAX_BYTES, diff_lines
from computer_linker.computer.facets.files import Inverse, Mark
from computer_linker.errors import LinkError
from computer_linker.model.base import Model
from computer_linker.model.history import HistoryEvent
from computer_linker.model.paths import PathRules, RootedPath
from computer_linker.providers.agents.sessions import Sessions
from computer_linker.providers.processes.records import Records
from computer_linker.registry.context import Context
from computer_linker.undo.journal import read_record
from computer_linker.undo.store import kept_content

_UNRULED = PathRules(allow_sensitive=True, allow_protected=True)
_MAX_STEPS = 100
_MAX_OUTPUT = 4000
_COMPARE_S = 3.0


class Stored(Model):
    kind: Annotated[str, Field(description="process or agent session")]
    id: str
    status: str
    output: Annotated[str, Field(description="The end of what is kept of its output.")]
    command: Annotated[str, Field(description="The command that shows all of it.")]


async def diff_of(ctx: Context, operation_id: str) -> list[str] | None:
    """The change as a diff, from what was before to what is there now; None when nothing is kept of it."""
    folder = ctx.services.home / "undo"
    record = await to_thread.run_sync(read_record, folder, operation_id)
    if record is None:
        return None
    lines: list[str] = []
    until = time.monotonic() + _COMPARE_S
    for step in record.steps[:_MAX_STEPS]:
        lines += await _step(ctx, folder, step, until)
    if len(record.steps) > _MAX_STEPS:
        lines.append(f"and {len(record.steps) - _MAX_STEPS} more")
    return lines


async def _step(ctx: Context, folder: Path, step: Inverse, until: float) -> list[str]:
    path = RootedPath(step["root"], tuple(step["path"]), _UNRULED)
    match step["do"]:
        case "move":
            return [f"{'/'.join(step['to'])} was moved to {path.shown}"]
        case "rmdir":
            return [f"{path.shown}: the folder was made"]
        case "mkdir":
            return [f"{path.shown}: the folder was removed"]
        case _:
            before = kept_content(folder, step["kept"], MAX_BYTES + 1) if "kept" in step else None
            if before is None and "kept" in step:
                return [f"{path.shown} was replaced or removed; it is kept, and is no plain file"]
    try:
        found = await ctx.computer.files.stat(path)
        after = (await ctx.computer.files.read_whole(path, MAX_BYTES + 1))[0] if found.type == "file" else None
        changed = "after" in step and found.mark != Mark(*step["after"])
    except LinkError:
        after, changed = None, "kept" not in step
    lines = await to_thread.run_sync(partial(diff_lines, path.shown, before, after, until=until))
    lines[0] = f"{path.shown}:" + (" (changed since; this is what differs now)" if changed else "")
    return lines


async def stored_of(ctx: Context, event: HistoryEvent) -> Stored | None:
    """The process or agent session that the event started or was about."""
    known = (event["summary"].get("processId"), event["summary"].get("sessionId"), event["target"])
    handle = next((one for one in known if isinstance(one, str) and HANDLE.match(one)), None)
    if handle is None:
        return None
    if handle.startswith("proc_"):
        return await to_thread.run_sync(_process, ctx.services.home / "processes", handle)
    return await to_thread.run_sync(_agent, ctx.services.home / "agents" / "sessions", handle, event)


def _process(folder: Path, handle: str) -> Stored | None:
    record = Records.read(folder, handle)
    if record is None:
        return None
    ended = f", exit {record.exit_code}" if record.exit_code is not None else ""
    return Stored(
        kind="process",
        id=handle,
        status=f"{record.status}{ended}",
        output="",
        command=f"computer-linker process read {handle}",
    )


def _agent(folder: Path, handle: str, event: HistoryEvent) -> Stored | None:
    session = Sessions(folder).find(handle) if folder.is_dir() else None
    if session is None:
        return None
    turn = next((one for one in session.turns if one.operation_id == event["operationId"]), session.last)
    ended = f", exit {turn.exit_code}" if turn.exit_code is not None else ""
    return Stored(
        kind="agent session",
        id=handle,
        status=f"{turn.status}{ended}",
        output=(turn.final_message or turn.stdout or turn.stderr)[-_MAX_OUTPUT:],
        command=f"computer-linker op codex.read {handle} --scope {session.scope}",
    )
