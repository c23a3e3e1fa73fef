"""Runs one program on a computer to its end, and returns what it printed."""

import os
from collections.abc import Mapping, Sequence

import anyio

from computer_linker.computer.facets.processes import Child, CompletedCommand, Launch, Processes
from computer_linker.errors import ExecutionFailed, InvalidRequest

_CHUNK = 65_536
_DRAIN_S = 0.25
"""How long to wait for the end of the output once the process has ended: an orphan may hold the pipe."""


async def run_to_end(
    processes: Processes, argv: Sequence[str], *, stdin: bytes, env: Mapping[str, str], timeout_s: float, limit: int
) -> CompletedCommand:
    """Start the program, feed it, and read both streams up to `limit` bytes each; killed when the time is over."""
    if not argv or not argv[0].startswith("/"):
        raise InvalidRequest("The program is named by its absolute path; nothing is looked up.")
    child = await processes.spawn(Launch(tuple(argv), dict(env), stdin="pipe" if stdin else "null"))
    out, err = bytearray(), bytearray()
    timed_out = False
    try:
        child.go()
        async with anyio.create_task_group() as group:
            group.start_soon(_read, child.stdout, out, limit)
            if child.stderr is not None:
                group.start_soon(_read, child.stderr, err, limit)
            if stdin and child.stdin is not None:
                group.start_soon(_write, child, stdin)
            with anyio.move_on_after(timeout_s) as waiting:
                ended = await child.wait()
            if waiting.cancelled_caught:
                timed_out = True
                child.kill()
                ended = await child.wait()
            group.cancel_scope.deadline = anyio.current_time() + _DRAIN_S
    finally:
        child.kill()
        for fd in (child.stdout, child.stderr, child.stdin):
            _closed(fd)
    if ended.reason is not None:
        raise ExecutionFailed(f"The program could not be started: {ended.reason}")
    return CompletedCommand(
        argv=list(argv),
        exit_code=ended.exit_code,
        signal=ended.signal,
        timed_out=timed_out,
        stdout=bytes(out[:limit]).decode("utf-8", "replace"),
        stderr=bytes(err[:limit]).decode("utf-8", "replace"),
        truncated=len(out) > limit or len(err) > limit,
    )


async def _read(fd: int, into: bytearray, limit: int) -> None:
    while True:
        await anyio.wait_readable(fd)
        try:
            piece = os.read(fd, _CHUNK)
        except BlockingIOError:
            continue
        except OSError:
            return
        if not piece:
            return
        # One byte more than the limit tells that there was more; the rest is read and dropped.
        into += piece[: max(0, limit + 1 - len(into))]


async def _write(child: Child, data: bytes) -> None:
    assert child.stdin is not None
    view = memoryview(data)
    try:
        while view:
            await anyio.wait_writable(child.stdin)
            try:
                view = view[os.write(child.stdin, view[:_CHUNK]) :]
            except BlockingIOError:
                continue
    except OSError:
        return
    finally:
        _closed(child.stdin)
        child.stdin = None


def _closed(fd: int | None) -> None:
    if fd is not None:
        try:
            os.close(fd)
        except OSError:
            return
