"""Edits of a language server as file changes: guarded by what was read, shown before they are made, and undoable."""

import time
from hashlib import sha256
from typing import Annotated, Any

from anyio.to_thread import run_sync
from pydantic import Field

from computer_linker.changes.difference import split_lines, unified
from computer_linker.computer.facets.files import Mark, Write
from computer_linker.errors import Conflict, InvalidRequest
from computer_linker.model.paths import RootedPath
from computer_linker.operations.code.asking import Asking
from computer_linker.providers.language.server import MAX_FILE
from computer_linker.providers.language.text import edited
from computer_linker.registry import Context, Model

_MAX_DIFF = 60_000
_DIFF_S = 3.0


class DryRun(Model):
    dry_run: Annotated[bool, Field(description="Only show what would change, as a diff.")] = False


class EditedFile(Model):
    path: str
    additions: int
    deletions: int
    sha256: str


class Edited(Model):
    files: list[EditedFile]
    diff: Annotated[str | None, Field(description="With `dryRun`: what would change.")] = None
    engine: str


async def change(asking: Asking, edits: list[tuple[RootedPath, list[Any]]], *, dry_run: bool) -> Edited:
    """Make all of a server's edits or none. Refuses when a file changed since the server read it."""
    ctx = asking.ctx
    drafts = [(path, *await _draft(ctx, path, part)) for path, part in edits]
    if not await asking.server.is_current():
        raise Conflict("A file changed while the edits were computed. Nothing was changed; ask again.")
    drafts = [each for each in drafts if each[1] != each[2]]
    changes = [Write(path, new, expect=mark) for path, _, new, mark in drafts]
    if changes or ctx.is_preview:
        await ctx.change(changes, dry_run=dry_run)
    else:
        ctx.effect = "suspected_noop"
    files = [await run_sync(_file, path, old, new) for path, old, new, _ in drafts]
    ctx.note(files=len(files))
    diff = await run_sync(_diff, [(path.shown, old, new) for path, old, new, _ in drafts]) if dry_run else None
    return Edited(files=files, diff=diff, engine=asking.engine)


async def _draft(ctx: Context, path: RootedPath, edits: list[Any]) -> tuple[bytes, bytes, Mark]:
    data, found = await ctx.computer.files.read_whole(path, MAX_FILE)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest(
            f"{path.shown} is not UTF-8, so a server's edits do not fit it.", path=path.shown
        ) from None
    return data, (await run_sync(edited, text, edits)).encode("utf-8"), found.mark


def _file(path: RootedPath, old: bytes, new: bytes) -> EditedFile:
    lines = unified(path.shown, old, new, time.monotonic() + _DIFF_S)
    body = (lines or [])[2:]
    if lines is None:
        before, after = (len(split_lines(part.decode("utf-8", "replace"))) for part in (old, new))
        return EditedFile(path=path.shown, additions=after, deletions=before, sha256=sha256(new).hexdigest())
    return EditedFile(
        path=path.shown,
        additions=sum(line.startswith("+") for line in body),
        deletions=sum(line.startswith("-") for line in body),
        sha256=sha256(new).hexdigest(),
    )


def _diff(drafts: list[tuple[str, bytes, bytes]]) -> str:
    until = time.monotonic() + _DIFF_S
    text = "".join(
        "".join(unified(name, old, new, until) or [f"{name}: too different to show\n"]) for name, old, new in drafts
    )
    return text if len(text) <= _MAX_DIFF else text[:_MAX_DIFF] + "\n[… cut …]\n"
