"""SOCKS version 5 without a password, for outgoing connections only (RFC 1928)."""

import ipaddress

from computer_linker.providers.network.stream import Ended, Stream

_CONNECT, _IPV4, _NAME, _IPV6 = 1, 1, 3, 4
ACCEPTED = bytes((5, 0, 0, 1, 0, 0, 0, 0, 0, 0))
REFUSED = bytes((5, 2, 0, 1, 0, 0, 0, 0, 0, 0))
"""Not allowed by the ruleset."""


def refusal(_why: str, _status: str) -> bytes:
    """The answer to a request that is not let through; the protocol has no room for a reason."""
    return REFUSED


def is_socks(first: bytes | bytearray) -> bool:
    return bool(first) and first[0] == 5


async def requested(client: Stream) -> tuple[str, int]:
    """The host and port that a client asks for, after the greeting."""
    _, count = await client.exactly(2)
    if 0 not in await client.exactly(count):
        await client.send(b"\5\xff")
        raise Ended
    await client.send(b"\5\0")
    version, command, _, kind = await client.exactly(4)
    if version != 5 or command != _CONNECT:
        await client.send(bytes((5, 7)) + REFUSED[2:])
        raise Ended
    if kind == _NAME:
        host = (await client.exactly((await client.exactly(1))[0])).decode("latin-1")
    elif kind in (_IPV4, _IPV6):
        host = str(ipaddress.ip_address(await client.exactly(4 if kind == _IPV4 else 16)))
    else:
        raise Ended
    return host, int.from_bytes(await client.exactly(2), "big")
