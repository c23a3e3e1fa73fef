"""What a person sees of a file change before they say yes: the difference, and a digest that holds the change to it."""

import time
from collections.abc import Iterable
from functools import partial
from hashlib import sha256
from typing import Protocol

from anyio.to_thread import run_sync

from computer_linker.computer.facets.files import Content
from computer_linker.errors import LimitExceeded, NotFound
from computer_linker.model.paths import RootedPath
from computer_linker.operations.file.changing import ContentInput, content_of
from computer_linker.policy.confirm import About
from computer_linker.policy.digest import digest_of_parts
from computer_linker.providers.fingerprints import Fingerprints
from computer_linker.providers.patching.shown import shown_change
from computer_linker.registry import Context

_MAX_READ = 20_000_000
_COMPARE_S = 1.0
"""For all files of one question together."""


class _MayAppend(Protocol):
    @property
    def append(self) -> bool: ...


class _HasDestination(Protocol):
    @property
    def destination(self) -> str: ...


class _MayBeElsewhere(_HasDestination, Protocol):
    @property
    def destination_scope(self) -> str | None: ...
    @property
    def source_scope(self) -> str | None: ...


async def show_write(ctx: Context, target: str, input: ContentInput, options: _MayAppend) -> About:
    """A file that gets this content, or this after what it has."""
    return await _content(ctx, target, input, append=options.append)


async def show_create(ctx: Context, target: str, input: ContentInput, options: object) -> About:
    """A new file."""
    return await _content(ctx, target, input, append=False)


async def show_delete(ctx: Context, target: str, options: object) -> About:
    """What goes."""
    path = ctx.path(target, for_writing=True)
    found = await ctx.computer.files.stat(path)
    if found.type == "directory":
        prints = Fingerprints(ctx.computer.files)
        await prints.add(path)
        return About(tuple(prints.lines), prints.holds)
    if found.type != "file" or found.size > _MAX_READ:
        line = f"{path.shown}: a {found.type} of {found.size} bytes"
        return About((line,), {path.shown: digest_of_parts(repr(found.mark))})
    return await show_files([(path.shown, await _now(ctx, path), None)])


async def show_move(ctx: Context, target: str, input: _HasDestination, options: object) -> About:
    """What goes where, and what it would replace there."""
    prints = Fingerprints(ctx.computer.files)
    await prints.add(ctx.path(target, for_writing=True), "moves")
    await prints.add(ctx.path(input.destination, for_writing=True), "to")
    return About(tuple(prints.lines), prints.holds)


async def show_copy(ctx: Context, target: str, input: _MayBeElsewhere, options: object) -> About:
    """What is copied, and what it would replace; the side that is another computer only by its name."""
    prints = Fingerprints(ctx.computer.files)
    if input.source_scope is None:
        await prints.add(ctx.path(target), "copies")
    else:
        prints.lines.append(f"copies {target} of {input.source_scope}, whose content is not known here")
    if input.destination_scope is None:
        await prints.add(ctx.path(input.destination, for_writing=True), "to")
    else:
        prints.lines.append(f"to {input.destination} of {input.destination_scope}, another computer")
    return About(tuple(prints.lines), prints.holds)


async def show_files(changes: Iterable[tuple[str, bytes | None, bytes | None]]) -> About:
    """Files by name with what they hold now and then; None is a file that is not there."""
    lines: list[str] = []
    held: dict[str, str] = {}
    until = time.monotonic() + _COMPARE_S
    for name, before, after in changes:
        lines += await run_sync(partial(shown_change, name, before, after, until=until))
        held[name] = "not there" if before is None else sha256(before).hexdigest()
    return About(tuple(lines), held)


async def _content(ctx: Context, target: str, input: ContentInput, *, append: bool) -> About:
    path = ctx.path(target, for_writing=True)
    if input.encoding not in ("utf8", "base64"):
        prints = Fingerprints(ctx.computer.files)
        await prints.add(path, "replaces")
        return About(
            (f"{path.shown}: its content comes beside the request and cannot be shown before.", *prints.lines),
            prints.holds,
        )
    content = await run_sync(_whole, content_of(input))
    try:
        before = await _now(ctx, path)
    except LimitExceeded:
        found = await ctx.computer.files.stat(path)
        what = f"{len(content)} bytes are put after it" if append else f"becomes {len(content)} bytes"
        line = f"{path.shown}: {found.size} bytes now, too many to compare; {what}"
        return About((line,), {path.shown: digest_of_parts(repr(found.mark))})
    return await show_files([(path.shown, before, (before or b"") + content if append else content)])


async def _now(ctx: Context, path: RootedPath) -> bytes | None:
    try:
        return (await ctx.computer.files.read_whole(path, _MAX_READ))[0]
    except NotFound:
        return None


def _whole(content: Content) -> bytes:
    return content if isinstance(content, bytes) else b"".join(content())
