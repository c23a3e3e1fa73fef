"""peer.pair: a code on one computer, typed on the other."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from computer_linker.errors import InvalidRequest
from computer_linker.registry.owner import (
    Context,
    Effect,
    Example,
    Model,
    Named,
    Note,
    Positional,
    Shown,
    owner_operation,
)
from computer_linker.service.peers import PeerManager, grant_notes


class PairInput(Model):
    address: Annotated[
        str | None,
        Field(description="HOST:PORT of the other computer; left out, this one shows a code."),
        Positional(),
    ] = None
    code: Annotated[str | None, Field(description="The code the other computer shows."), Positional()] = None
    allow: Annotated[
        list[str],
        Field(description="What the other may use here: SCOPE or SCOPE:CAPABILITY."),
        Named(metavar="RIGHT"),
    ] = []
    name: Annotated[str | None, Field(description="What to call the other computer here.")] = None


class Pairing(Model):
    """A code to type on the other computer with what it gives, or the computer that was paired."""

    code: str | None = None
    address: Annotated[str | None, Field(description="Where the other computer finds this one.")] = None
    listening: str | None = None
    grants: Annotated[list[str] | None, Field(description="What the other may use here.")] = None
    name: Annotated[str | None, Field(description="The paired computer's name here.")] = None
    machine_id: str | None = None
    known_there_as: str | None = None


def _text(result: Pairing) -> Iterator[Shown]:
    if result.code is None:
        yield f"Paired with {result.name}. Use it as a scope: {result.name}/SCOPE"
        return
    yield result.code
    yield Note(f"Within five minutes, on the other computer: computer-linker peer pair {result.address} {result.code}")
    given = ", ".join(result.grants or []) or "nothing (give it something with --allow SCOPE)"
    yield Note(f"It may then use here: {given}")


@owner_operation(
    "peer.pair",
    did="paired a computer[, {computer}]",
    effect=Effect.CHANGE,
    where="service",
    text=_text,
    examples=[Example("A code for a computer that may read.", {"input": {"allow": ["app:fs:read"]}}, runs=False)],
)
async def peer_pair(ctx: Context, input: PairInput = PairInput()) -> Pairing:
    """Pair two computers: show a code on the one, type it on the other."""
    if input.address is None:
        return _invite(ctx, input.allow)
    if input.code is None:
        raise InvalidRequest("A code is needed.", hint="on the other computer: computer-linker peer pair")
    if input.allow:
        raise InvalidRequest(
            "What may be used here is said where the code is shown.", hint="computer-linker peer pair --allow RIGHT"
        )
    peers = ctx.use(PeerManager)
    ctx.note(step="join", address=input.address)
    peer, known_as = await peers.join(input.address, input.code, input.name)
    ctx.note(computer=peer.name, machine=peer.machine_id)
    ctx.effect = "confirmed" if peers.is_paired(peer) else "partial"
    return Pairing(name=peer.name, machine_id=peer.machine_id, known_there_as=known_as)


def _invite(ctx: Context, grants: list[str]) -> Pairing:
    peers = ctx.use(PeerManager)
    code = peers.invite(grants)
    ctx.note(step="invite", listening=peers.listening, **grant_notes(grants))
    ctx.effect = "confirmed" if peers.is_inviting else "partial"
    return Pairing(code=code, address=peers.address_for_others, listening=peers.listening, grants=grants)
