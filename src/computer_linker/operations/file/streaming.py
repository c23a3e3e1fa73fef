"""Files in byte streams of calls between computers: read and written in chunks, so that their length costs no memory."""

import asyncio
from collections.abc import Callable, Iterator

import anyio.to_thread

from computer_linker.computer.facets.files import Streamed
from computer_linker.computer.remote.flow import PIECE, Flow
from computer_linker.errors import Conflict, InvalidRequest
from computer_linker.model.paths import RootedPath
from computer_linker.registry import Context
from computer_linker.system import os

_TOLD_EVERY = 8 << 20


def streamed(ctx: Context, content: str, size: int | None, sha256: str | None) -> Streamed:
    """The content from this call's byte stream. Raises InvalidRequest without one."""
    flow = _flow(ctx)
    if content:
        raise InvalidRequest(
            "With `stream` the content comes beside the call; `content` is empty.", field="input.content"
        )
    return Streamed(flow.pieces, size, sha256 and sha256.lower())


async def send_file(ctx: Context, path: RootedPath, flow: Flow | None = None) -> int:
    """Send a regular file by this call's byte stream, or by `flow`; returns its size in bytes."""
    flow = flow or _flow(ctx)
    held = ctx.computer.files.open_file(path)
    try:
        sent = await anyio.to_thread.run_sync(flow.send, _source(held, path))
    finally:
        os.close(held)
    ctx.note(size=sent)
    return sent


def stream_progress(ctx: Context, total: int | None) -> Callable[[int], None]:
    """A function that reports a stream's progress to the client; called from its worker thread."""
    loop, last = asyncio.get_running_loop(), 0

    def report(done: int) -> None:
        nonlocal last
        if done - last >= _TOLD_EVERY or done == total:
            last = done
            loop.call_soon_threadsafe(ctx.progress, "bytes", done, total)

    return report


def _flow(ctx: Context) -> Flow:
    if not isinstance(ctx.stream, Flow):
        raise InvalidRequest(
            "`stream` is for calls between computers, which send the bytes beside the call.", field="encoding"
        )
    return ctx.stream


def _source(held: int, path: RootedPath) -> Callable[[int], Iterator[bytes]]:
    before = _state(held)

    def pieces(start: int) -> Iterator[bytes]:
        at = start
        while piece := os.pread(held, PIECE, at):
            at += len(piece)
            yield piece
        if _state(held) != before:
            # The bytes sent may mix the old and the new content: the other side must not keep them.
            raise Conflict(f"{path.shown} was changed while it was read.", path=path.shown)

    return pieces


def _state(held: int) -> tuple[int, int, int]:
    found = os.fstat(held)
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns
