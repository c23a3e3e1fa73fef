"""file.copy: a second file or folder with the same content, here or on another computer."""

import asyncio
from collections.abc import Awaitable
from typing import Annotated, Any

from pydantic import Field

from computer_linker.approvals.request import Preview
from computer_linker.changes.fingerprints import Fingerprints
from computer_linker.changes.preview import obstacle
from computer_linker.computer.facets.files import Copy, Write
from computer_linker.computer.remote.flow import Flow
from computer_linker.errors import Aborted, InvalidRequest, LinkError
from computer_linker.model.envelope import Call, Reply, error_in
from computer_linker.operations.file.move import Moved, MoveInput, MoveOptions
from computer_linker.operations.file.streaming import send_file, stream_progress
from computer_linker.registry import Capability, Context, Effect, Example, operation

_OtherScope = Annotated[str | None, Field(min_length=3, max_length=200, pattern=r"^[^/]+/[^/]+$")]

_MAX_DIGESTED = 256 << 20


class CopyInput(MoveInput):
    """Both paths are in this scope unless one of the two scopes of another computer is named."""

    destination_scope: Annotated[
        _OtherScope, Field(description="Copy to another computer: its scope, such as `laptop/app`.")
    ] = None
    source_scope: Annotated[
        _OtherScope, Field(description="Copy from another computer: its scope, such as `laptop/app`.")
    ] = None


async def show_copy(ctx: Context, target: str, input: CopyInput, options: MoveOptions) -> Preview:
    """The source, and what it would replace; a side on another computer only by its name."""
    prints = Fingerprints(ctx.computer.files)
    if input.source_scope is None:
        await prints.add(ctx.path(target), "copies")
    else:
        prints.lines.append(f"copies {target} of {input.source_scope}, whose content is not known here")
    if input.destination_scope is None:
        await prints.add(ctx.path(input.destination, for_writing=True), "to")
    else:
        prints.lines.append(f"to {input.destination} of {input.destination_scope}, another computer")
    is_here = input.source_scope is None and input.destination_scope is None
    if not is_here:
        return Preview(tuple(prints.lines), prints.holds, is_once=input.source_scope is not None)
    stands_against = await obstacle(ctx.computer.files, _copy(ctx, target, input, options))
    return Preview(tuple(prints.lines), prints.holds, obstacle=stands_against, paths=tuple(prints.holds))


def _copy(ctx: Context, target: str, input: CopyInput, options: MoveOptions) -> Copy:
    """The change of a copy within this scope."""
    source, destination = ctx.path(target), ctx.path(input.destination, for_writing=True)
    return Copy(source, destination, overwrite=options.overwrite, create_parents=options.create_parents)


@operation(
    "file.copy",
    did="copied[ {target} to {destination}]",
    needs={Capability.FS_READ, Capability.FS_WRITE},
    effect=Effect.CHANGE,
    awaits_intent=True,
    deadline_s=None,
    shows=show_copy,
    examples=[
        Example("Copy a file.", {"target": "notes.txt", "input": {"destination": "copy.txt"}}),
        Example(
            "Copy a file to another computer.",
            {"target": "notes.txt", "input": {"destination": "notes.txt", "destinationScope": "laptop/app"}},
            runs=False,
        ),
    ],
)
async def file_copy(ctx: Context, target: str, input: CopyInput, options: MoveOptions = MoveOptions()) -> Moved:
    """Copy a file or a whole folder.

    Links and special files in a folder are left out, and so is what usually holds a secret; a warning says how many.
    Between computers one file is streamed; it is whole at the other end or not there at all.
    """
    if input.destination_scope is not None and input.source_scope is not None:
        raise InvalidRequest("Name destinationScope or sourceScope: one side of a copy is this computer.")
    if input.destination_scope is not None:
        return await _push(ctx, target, input, options, input.destination_scope)
    if input.source_scope is not None:
        return await _pull(ctx, target, input, options, input.source_scope)
    change = _copy(ctx, target, input, options)
    done = (await ctx.change([change]))[0]
    ctx.note(entries=done.entries, size=done.size)
    return Moved(from_=change.path.shown, to=change.destination.shown)


async def _push(ctx: Context, target: str, input: CopyInput, options: MoveOptions, scope: str) -> Moved:
    """Send a file; the other computer writes it under its own policy and returns the outcome."""
    source = ctx.path(target)
    about = await ctx.computer.files.stat(source)
    if about.type == "directory":
        raise InvalidRequest("Between computers one file is copied at a time; this is a folder.", path=source.shown)
    await ctx.durable_intent()
    # Read twice, so that the approver there sees which content comes; of longer files only the size is named.
    digest = {"sha256": await ctx.computer.files.sha256(source)} if about.size <= _MAX_DIGESTED else {}
    flow = Flow(stream_progress(ctx, about.size))
    call = Call(
        scope,
        "file.write" if options.overwrite else "file.create",
        input.destination,
        {"content": "", "encoding": "stream", "size": about.size, **digest},
        {"createParents": options.create_parents},
        stream=flow,
    )
    reply = await _beside(send_file(ctx, source, flow), ctx.dispatch(call), flow)
    data = _data(reply)
    is_whole = data.get("size") == flow.size
    ctx.effect = reply.envelope.get("effect") if is_whole else "unverifiable"
    ctx.note(size=flow.size, computer=scope.partition("/")[0], operation=str(reply.envelope.get("operationId")))
    return Moved(from_=source.shown, to=f"{scope}:{data.get('path')}")


async def _pull(ctx: Context, target: str, input: CopyInput, options: MoveOptions, scope: str) -> Moved:
    """Fetch a file; it is written here only when it arrived completely."""
    destination = ctx.path(input.destination, for_writing=True)
    flow = Flow(stream_progress(ctx, None))
    write = Write(destination, flow.pieces, must_be_new=not options.overwrite, create_parents=options.create_parents)
    call = Call(scope, "file.read", target, options={"encoding": "stream"}, stream=flow)
    fetching = asyncio.ensure_future(_fetched(ctx, call, flow))
    try:
        done = (await ctx.change([write]))[0]
    finally:
        flow.fail(Aborted("The copy ended."))
        fetching.cancel()
        await asyncio.wait([fetching])
    ctx.note(size=done.size, sha256=done.sha256, computer=scope.partition("/")[0])
    return Moved(from_=f"{scope}:{target}", to=destination.shown)


async def _fetched(ctx: Context, call: Call, flow: Flow) -> None:
    """Run the other computer's side; its refusal aborts the write here."""
    try:
        _data(await ctx.dispatch(call))
    except LinkError as error:
        flow.fail(error)


async def _beside(sending: Awaitable[int], work: Awaitable[Reply], flow: Flow) -> Reply:
    """The reply of the other computer, while bytes are sent. Only that reply has the outcome there."""
    sender = asyncio.ensure_future(sending)
    try:
        return await work
    finally:
        flow.fail(Aborted("The copy ended."))
        await asyncio.wait([sender])
        if not sender.cancelled():
            sender.exception()


def _data(reply: Reply) -> dict[str, Any]:
    if not reply.ok:
        raise error_in(reply.envelope)
    data: dict[str, Any] = reply.envelope["data"]
    return data
