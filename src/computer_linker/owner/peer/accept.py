"""peer.accept: a computer that changed since it was paired."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from computer_linker.registry.owner import Context, Effect, Example, Model, Note, Positional, Shown, owner_operation
from computer_linker.service.peers import PeerManager


class AcceptInput(Model):
    name: Annotated[str, Field(description="The computer's name here."), Positional()]
    word: Annotated[str | None, Field(description="The word that was shown beside what changed."), Positional()] = None


class Change(Model):
    computer: str
    changes: list[str]
    word: Annotated[str | None, Field(description="What accepts exactly these changes.")] = None
    accepted: bool


def _text(result: Change) -> Iterator[Shown]:
    if result.accepted:
        yield f"{result.computer} is accepted as it is now."
        return
    for change in result.changes or ["it is again what was accepted"]:
        yield f"{result.computer}: {change}"
    yield Note(f"If that is right: computer-linker peer accept {result.computer} {result.word}")


@owner_operation(
    "peer.accept",
    did="accepted the changes of the computer {computer}",
    effect=Effect.CHANGE,
    where="service",
    text=_text,
    examples=[Example("See what changed.", {"input": {"name": "laptop"}}, runs=False)],
)
async def peer_accept(ctx: Context, input: AcceptInput) -> Change:
    """See what a computer says of itself since it changed, and accept exactly that: until then it is refused."""
    peers = ctx.use(PeerManager)
    if input.word is None:
        peer, changes, word = peers.changed(input.name)
        ctx.note(computer=peer.name, changes=len(changes), accepted=False)
        return Change(computer=peer.name, changes=changes, word=word, accepted=False)
    peer, changes = peers.accept(input.name, input.word)
    ctx.note(computer=peer.name, machine=peer.machine_id, changes=len(changes), accepted=True)
    ctx.effect = "confirmed" if peers.is_paired(peer) and not peer.refused else "partial"
    return Change(computer=peer.name, changes=changes, accepted=True)
