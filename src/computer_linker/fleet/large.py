"""Calls larger than the server's messages: the call itself streams beside a short message that announces it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgpack

from computer_linker.computer.remote.flow import PIECE, Flow
from computer_linker.errors import InvalidRequest, LimitExceeded
from computer_linker.fleet.seal import unpacked

MAX_REQUEST = 9 * 1024 * 1024


class TooLarge(Exception):
    """The call exceeds the server's message size; nothing was sent."""


@asynccontextmanager
async def streamed(call: dict[str, Any]) -> AsyncIterator[Flow]:
    """A flow that carries this call while the body runs. Raises LimitExceeded for more than a machine accepts."""
    raw = bytes(msgpack.packb(call, use_bin_type=True))
    if len(raw) > MAX_REQUEST:
        raise LimitExceeded("This call is larger than a fleet carries; send less at once.", limit=MAX_REQUEST)
    flow = Flow()
    sending = asyncio.ensure_future(asyncio.to_thread(flow.send, lambda start: _pieces(raw, start)))
    try:
        yield flow
    finally:
        # The call has ended, and with it the flow: the call reports the flow's error.
        await asyncio.wait([sending])
        sending.exception()


async def received(flow: Flow) -> dict[str, Any]:
    """Read the call from a flow. Raises InvalidRequest for one that is too large or malformed."""
    call = unpacked(await asyncio.to_thread(_joined, flow))
    if type(call) is not dict:
        raise InvalidRequest("That is no call.", rule="malformed")
    return call


def _pieces(raw: bytes, start: int) -> Iterator[bytes]:
    for at in range(start, len(raw), PIECE):
        yield raw[at : at + PIECE]


def _joined(flow: Flow) -> bytes:
    raw = bytearray()
    for piece in flow.pieces():
        raw += piece
        if len(raw) > MAX_REQUEST:
            raise InvalidRequest("A request of the fleet is too large.", rule="oversized")
    return bytes(raw)
