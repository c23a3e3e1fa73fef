"""peer.listen: the listener for paired computers."""

from typing import Annotated

from pydantic import Field

from computer_linker.registry.owner import Context, Effect, Example, Model, owner_operation
from computer_linker.service.peers import PeerManager


class ListenInput(Model):
    host: Annotated[str, Field(description="The address to listen on; 0.0.0.0 for every network.")] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535, description="The port.")] = 3940
    off: Annotated[bool, Field(description="Stop listening, and stay so after a restart.")] = False


class Listening(Model):
    listening: Annotated[str | None, Field(description="HOST:PORT; null when it does not listen.")]


@owner_operation(
    "peer.listen",
    did="changed the peer port[ from {before}][ to {listening}]",
    effect=Effect.CHANGE,
    where="service",
    text=lambda result: [
        f"Listening for paired computers on {result.listening}." if result.listening else "Not listening."
    ],
    examples=[Example("Listen in one network.", {"input": {"host": "192.168.1.5"}}, runs=False)],
)
async def peer_listen(ctx: Context, input: ListenInput = ListenInput()) -> Listening:
    """Let paired computers reach this one. The handshake refuses every other."""
    peers = ctx.use(PeerManager)
    ctx.note(before=peers.listening)
    if input.off:
        await peers.stop_listening()
        ctx.effect = "confirmed" if peers.address is None and peers.stored_address() is None else "partial"
    else:
        await peers.listen(input.host, input.port)
        is_kept = peers.address is not None and peers.stored_address() == (input.host, peers.address[1])
        ctx.effect = "confirmed" if is_kept else "partial"
    ctx.note(listening=peers.listening)
    return Listening(listening=peers.listening)
