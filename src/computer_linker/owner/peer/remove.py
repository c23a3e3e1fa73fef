"""peer.remove: unpair a computer."""

from typing import Annotated

from pydantic import Field

from computer_linker.registry.owner import Context, Effect, Example, Model, Positional, owner_operation
from computer_linker.service.peers import PeerManager, grant_notes


class RemoveInput(Model):
    name: Annotated[str, Field(description="The computer's name here."), Positional()]


class Removed(Model):
    removed: str


@owner_operation(
    "peer.remove",
    did="removed the computer {computer}",
    effect=Effect.CHANGE,
    where="service",
    text=lambda result: [f"{result.removed} is no longer paired with this computer."],
    examples=[Example("Forget a computer.", {"input": {"name": "laptop"}}, runs=False)],
)
async def peer_remove(ctx: Context, input: RemoveInput) -> Removed:
    """Forget a computer: its key opens nothing here from now on."""
    peers = ctx.use(PeerManager)
    peer = await peers.remove(input.name)
    ctx.note(computer=peer.name, machine=peer.machine_id, **grant_notes(peer.grants))
    ctx.effect = "partial" if peers.is_paired(peer) else "confirmed"
    return Removed(removed=peer.name)
