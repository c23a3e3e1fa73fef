"""peer.list: the paired computers."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from computer_linker.registry.owner import Context, Effect, Example, Model, Note, Shown, Table, owner_operation
from computer_linker.service.peers import PairedComputer, PeerManager


class PairedComputers(Model):
    computers: list[PairedComputer]
    listening: Annotated[str | None, Field(description="HOST:PORT where paired computers reach this one now.")]


def _text(result: PairedComputers) -> Iterator[Shown]:
    if not result.computers:
        yield Note("No other computer is paired with this one. computer-linker peer pair shows a code.")
        return
    rows = [
        (
            item.name,
            item.address or "calls us",
            ", ".join(scope.id for scope in item.scopes) or "nothing",
            ", ".join(item.may_use_here) or "nothing",
            item.machine_id,
        )
        for item in result.computers
    ]
    yield Table(rows, ("computer", "address", "gives us", "may use here", "id"))


@owner_operation(
    "peer.list",
    effect=Effect.OBSERVE,
    words=("peer list", "computers"),
    text=_text,
    examples=[Example("Which computers are paired.", {}, runs=False)],
)
async def peer_list(ctx: Context) -> PairedComputers:
    """The computers this one is paired with."""
    peers = ctx.use(PeerManager)
    return PairedComputers(computers=peers.paired(), listening=peers.listening)
