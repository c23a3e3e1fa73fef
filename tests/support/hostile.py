"""A hostile crowd on one port of this machine, in a process of its own: `python -m support.hostile PORT KIND...`.

It says `here` once everyone is in place, works until its input ends or a minute is over, and touches nothing but 127.0.0.1.
"""

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LONGEST_S = 240
_DICE = random.Random(1)
_PROBES = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"SSH-2.0-scan\r\n",
    b"\x00" * 64,
    b"GET / HTTP/1.0\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\n\r\n",
    b"\xff\xfeSMBr",
    b"EHLO scan\r\n",
    b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 99999999\r\n\r\n",
    b"",
)
_RESTED_S = 0.02
_GATHERED_S = 90
_tried = asyncio.Semaphore(0)


async def _connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        return await asyncio.open_connection("127.0.0.1", port)
    finally:
        _tried.release()


async def _idle(port: int) -> None:
    """Connect and say nothing."""
    reader, writer = await _connected(port)
    with suppress(OSError):
        await reader.read()
    writer.close()


async def _dripping(port: int, head: bytes, drop: bytes) -> None:
    reader, writer = await _connected(port)
    ended = asyncio.ensure_future(reader.read())
    # However it ended is all the same to us.
    ended.add_done_callback(lambda it: it.cancelled() or it.exception())
    with suppress(OSError):
        writer.write(head)
        while not ended.done():
            writer.write(drop)
            await writer.drain()
            await asyncio.wait([ended], timeout=0.5)
    writer.close()


async def _slow_head(port: int) -> None:
    await _dripping(port, f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-Slow: ".encode(), b"a")


async def _slow_body(port: int) -> None:
    head = f"POST /token HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 60000\r\n\r\n"
    await _dripping(port, head.encode(), b"a")


async def _asking(port: int, request: bytes) -> None:
    reader, writer = await _connected(port)
    writer.write(request)
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(2):
            await reader.read(4096)
    writer.close()
    await asyncio.sleep(_RESTED_S)  # the pace of an attacker


async def _scanner(port: int) -> None:
    await _asking(port, _DICE.choice(_PROBES))


async def _guesser(port: int) -> None:
    guess = _DICE.randbytes(16).hex()
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {guess}\r\nContent-Length: 2\r\n\r\n{{}}"
    await _asking(port, head.encode())


async def _registrar(port: int) -> None:
    body = '{"redirect_uris": ["https://crowd.example/cb"]}'
    head = f"POST /register HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    await _asking(port, f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())


KINDS: dict[str, tuple[int, Callable[[int], Awaitable[None]]]] = {
    "idle": (500, _idle),
    "slow heads": (100, _slow_head),
    "slow bodies": (100, _slow_body),
    "port scan": (4, _scanner),
    "guessing": (4, _guesser),
    "registering": (4, _registrar),
}
"""How many of each, and what each does again and again."""


async def _again_and_again(work: Callable[[int], Awaitable[None]], port: int) -> None:
    while True:
        with suppress(OSError):
            await work(port)
        await asyncio.sleep(_RESTED_S)  # the pace of an attacker


async def _crowd(port: int, kinds: list[str]) -> None:
    tasks = [
        asyncio.create_task(_again_and_again(work, port))
        for kind in kinds
        for work in [KINDS[kind][1]] * KINDS[kind][0]
    ]
    async with asyncio.timeout(_GATHERED_S):
        for _ in tasks:
            await _tried.acquire()
    print("here", flush=True)
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ended.set)
    with suppress(TimeoutError):
        async with asyncio.timeout(LONGEST_S):
            await ended.wait()
    for task in tasks:
        task.cancel()


@contextmanager
def crowd(port: int, *kinds: str) -> Iterator[None]:
    """The crowd, there while the body runs; every kind when none is named."""
    process = subprocess.Popen(
        [sys.executable, "-m", "support.hostile", str(port), *(kinds or KINDS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    try:
        assert process.stdout.readline() == b"here\n"
        yield
        assert process.poll() is None, "the crowd left early"
    finally:
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
        process.stdout.close()


if __name__ == "__main__":
    asyncio.run(_crowd(int(sys.argv[1]), sys.argv[2:]))
