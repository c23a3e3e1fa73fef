"""Bytes from one connection to another: by copies, and by the kernel once much comes at a time."""

import asyncio
import os
from collections.abc import Callable

from computer_linker.providers.network.stream import IDLE_S, Ended, Limit, Stream

_PIECE = 65_536
_MAX_PIECE = 262_144
_SPLICED = 1_048_576


async def pour(
    source: Stream,
    sink: Stream,
    count: int | None = None,
    counted: Callable[[int], None] = lambda _count: None,
    limit: Limit | None = None,
) -> None:
    """Send on `count` bytes, or all up to the end. Raises Ended when there are fewer."""
    left = count
    if source.held:
        first = source.take(len(source.held) if left is None else left)
        left = None if left is None else left - len(first)
        counted(len(first))
        await sink.send(first)
    if await _copied(source, sink, left, counted, limit):
        raise Ended


async def _copied(
    source: Stream, sink: Stream, left: int | None, counted: Callable[[int], None], limit: Limit | None
) -> int | None:
    """Send on by copies, or by the kernel once much comes at a time; how much is missing at the end."""
    can_splice = source.can_splice and sink.can_splice
    room = memoryview(bytearray(_PIECE if left is None else min(left, _PIECE)))
    while left is None or left > 0:
        if limit is not None:
            limit.set(IDLE_S)
        size = await source.read_into(room if left is None else room[:left])
        if size == 0:
            break
        left = None if left is None else left - size
        counted(size)
        await sink.send(room[:size])
        # Where both sides are always ready neither call waits, and other work of the service would not run.
        await asyncio.sleep(0)
        if size == _PIECE and can_splice and left != 0:
            pipe = _pipe()
            if pipe is not None:
                return await _spliced(pipe, source, sink, left, counted, limit)
            can_splice = False
        if size == len(room) < _MAX_PIECE:
            room = memoryview(bytearray(2 * size))
    return left


async def _spliced(
    pipe: tuple[int, int],
    source: Stream,
    sink: Stream,
    left: int | None,
    counted: Callable[[int], None],
    limit: Limit | None,
) -> int | None:
    """Send on through a pipe, which is closed at the end: the bytes never come into this process."""
    try:
        while left is None or left > 0:
            if limit is not None:
                limit.set(IDLE_S)
            size = await source.spliced_into(pipe[1], _SPLICED if left is None else min(left, _SPLICED))
            if size == 0:
                break
            left = None if left is None else left - size
            counted(size)
            await sink.spliced_from(pipe[0], size)
            await asyncio.sleep(0)
        return left
    finally:
        os.close(pipe[0])
        os.close(pipe[1])


def _pipe() -> tuple[int, int] | None:
    """A large pipe; None where this process may open no more."""
    from computer_linker.computer.local.linux.child_streams import widen_pipe

    try:
        pipe = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    # A small one moves the same bytes in more steps.
    widen_pipe(pipe[1])
    return pipe


async def join(
    one: Stream,
    other: Stream,
    sent: Callable[[int], None],
    received: Callable[[int], None],
    idle_s: float = IDLE_S,
) -> None:
    """Pour in both directions until both have ended, one has failed, or nothing has moved for long."""

    async def direction(source: Stream, sink: Stream, counted: Callable[[int], None]) -> None:
        await pour(source, sink, None, counted)
        await sink.finish()

    # The limit that the greeting had is over: from here on only `idle_s` bounds it.
    one.limit.set(None)
    moved = 0

    def counting(counted: Callable[[int], None]) -> Callable[[int], None]:
        def count(size: int) -> None:
            nonlocal moved
            moved += size
            counted(size)

        return count

    both = [
        asyncio.ensure_future(direction(one, other, counting(sent))),
        asyncio.ensure_future(direction(other, one, counting(received))),
    ]
    try:
        seen = -1
        while seen != moved:
            # One direction may be silent for hours while the other carries a large file.
            seen = moved
            done, pending = await asyncio.wait(both, timeout=idle_s, return_when=asyncio.FIRST_EXCEPTION)
            if not pending or any(each.exception() for each in done):
                break
    finally:
        for each in both:
            each.cancel()
        await asyncio.gather(*both, return_exceptions=True)
